//! The declaration of a record type in a few lines.

/// Implements [`Record`](super::Record). Only `table`, `key` and `owner` are required; the order is fixed.
///
/// ```ignore
/// impl_record!(Domain {
///     table: Domains,
///     key: |domain| -> (OrganizationId, DomainId) { domain.meta },
///     parts: meta: (OrganizationId, DomainId), fields: Fields,
///     indexes: [&BY_NAME, &OF_ORGANIZATION],
///     counts: [|domain| Some(domain.meta.0.encoded())],
///     owner: |domain, _| Ok(Some(domain.meta.0.owner())),
///     references: |domain| [Reference::to::<Organization>(&domain.meta.0)],
/// });
/// ```
///
/// expands to
///
/// ```ignore
/// impl Record for Domain {
///     const TABLE: Table = Table::Domains;
///     const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_NAME, &OF_ORGANIZATION];
///     const COUNTS: &'static [Count<Self>] = &[|domain| Some(domain.meta.0.encoded())];
///     type Key = (OrganizationId, DomainId);
///     type Meta = (OrganizationId, DomainId);
///     type Fields = Fields;
///     fn key(&self) -> Self::Key { .. }
///     fn parts(&self) -> (&Self::Meta, &Self::Fields) { (&self.meta, &self.fields) }
///     fn from_parts(meta: Self::Meta, fields: Self::Fields) -> Self { Self { meta, fields } }
///     fn owner(&self, tx: &dyn Raw) -> Result<Option<Owner>> { .. }
///     fn references(&self) -> Vec<Reference> { .. }
/// }
/// ```
///
/// `parts` names the two members of the record. Without it the record is its own metadata, and responses show
/// nothing of it. `projection: |meta, fields| Meta { .. }` returns the metadata with the members that follow from
/// the fields; it becomes [`projected`](super::Record::projected).
macro_rules! impl_record {
    ($record:ident {
        table: $table:ident,
        key: |$of_key:pat_param| -> $key:ty $key_body:block,
        $(parts: $meta:ident: $meta_type:ty, $fields:ident: $fields_type:ty,)?
        $(projection: |$of_meta:pat_param, $of_fields:pat_param| $projection:expr,)?
        $(indexes: $indexes:expr,)?
        $(counts: [$($count:expr),+ $(,)?],)?
        $(sums: $sums:expr,)?
        $(reuses_keys: $reuses_keys:literal,)?
        owner: |$of_owner:pat_param, $tx:pat_param| $owner:expr
        $(, references: |$of_references:pat_param| $references:expr)?
        $(,)?
    }) => {
        impl $crate::store::Record for $record {
            const TABLE: $crate::store::Table = $crate::store::Table::$table;
            $(const INDEXES: &'static [&'static dyn $crate::store::Indexed<Self>] = &$indexes;)?
            $(const COUNTS: &'static [$crate::store::Count<Self>] = &[$($count),+];)?
            $(const SUMS: &'static [&'static dyn $crate::store::Summed] = &$sums;)?
            $(const REUSES_KEYS: bool = $reuses_keys;)?
            type Key = $key;

            fn key(&self) -> $key {
                let $of_key = self;
                $key_body
            }

            $crate::store::impl_record!(@parts $($meta: $meta_type, $fields: $fields_type)?);

            $(fn projected(&self) -> Option<Self> {
                let (meta, fields) = $crate::store::Record::parts(self);
                let ($of_meta, $of_fields) = (meta, fields);
                let projected = $projection;
                (projected != *meta).then(|| Self::from_parts(projected, fields.clone()))
            })?

            fn owner(
                &self,
                tx: &dyn $crate::store::Raw,
            ) -> $crate::base::error::Result<Option<$crate::store::Owner>> {
                let ($of_owner, $tx) = (self, tx);
                $owner
            }

            $(fn references(&self) -> Vec<$crate::store::Reference> {
                let $of_references = self;
                Vec::from($references)
            })?
        }
    };
    (@parts) => {
        type Meta = Self;
        type Fields = ();

        fn parts(&self) -> (&Self, &()) {
            (self, &())
        }

        fn from_parts(meta: Self, (): ()) -> Self {
            meta
        }
    };
    (@parts $meta:ident: $meta_type:ty, $fields:ident: $fields_type:ty) => {
        type Meta = $meta_type;
        type Fields = $fields_type;

        fn parts(&self) -> (&$meta_type, &$fields_type) {
            (&self.$meta, &self.$fields)
        }

        fn from_parts($meta: $meta_type, $fields: $fields_type) -> Self {
            Self { $meta, $fields }
        }
    };
}

pub(crate) use impl_record;

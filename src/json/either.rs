//! A choice of two schemas.

use std::borrow::Cow;
use std::marker::PhantomData;

use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The schema of a value that is either an `A` or a `B`.
pub struct Either<A, B>(PhantomData<fn() -> (A, B)>);

impl<A: ToSchema, B: ToSchema> PartialSchema for Either<A, B> {
    fn schema() -> RefOr<Schema> {
        let one = OneOfBuilder::new().item(Ref::from_schema_name(A::name()));
        one.item(Ref::from_schema_name(B::name())).into()
    }
}

impl<A: ToSchema, B: ToSchema> ToSchema for Either<A, B> {
    fn name() -> Cow<'static, str> {
        format!("{}Or{}", A::name(), B::name()).into()
    }

    fn schemas(found: &mut Vec<(String, RefOr<Schema>)>) {
        found.push((A::name().into_owned(), A::schema()));
        A::schemas(found);
        found.push((B::name().into_owned(), B::schema()));
        B::schemas(found);
    }
}

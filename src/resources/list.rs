//! The list of resources.

/// Passes the names of all resources to the macro `$then`: first those whose changes the activity log covers.
///
/// The order is the order of the API document. A record refers only to records of resources before its own, and in its
/// own only to records that `RECORDS` lists before it. A deleted parent leaves records that are deleted in the reverse
/// order.
macro_rules! for_each_resource {
    ($then:ident) => {
        $then! {
            logged:
                users
                organizations
                members
                roles
                projects
                api_keys
                sessions
                dashboards
                insights
                access_controls
                collaborators
                sharing
                domains
                batch_exports
                invites
                signup;
            log: activity
        }
    };
}

pub(crate) use for_each_resource;

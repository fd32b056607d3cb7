//! The routes of the control plane.

use crate::auth::Requirements;
use crate::console;
use crate::http::openapi::{self, About};
use crate::http::routes::Routes;
use crate::input::{Email, Identifier, Integer, Text};
use crate::test_server::clock::{ClockBody, ClockChange, SetClockBody};
use crate::test_server::dns::{DnsAnswer, RecordName};
use crate::test_server::faults::FaultRules;
use crate::test_server::journal::{EntriesBody, RequestWait};
use crate::test_server::people::{TestKey, TestKeyBody, TestOrganization, TestOrganizationBody};
use crate::test_server::ready::ReadyAt;
use crate::test_server::snapshots::{SnapshotBody, SnapshotName};

use super::handlers::{self, FaultsBody, MailsBody, NamesBody, SnapshotsBody};
use super::inspector;

/// The path below which all others are.
pub(super) const ROOT: &str = "/_test/";
const SCHEMA: &str = "/_test/schema/";
const RESET: &str = "/_test/reset/";
const SNAPSHOTS: &str = "/_test/snapshots/";
const SNAPSHOT: &str = "/_test/snapshots/{name}/";
const RESTORE: &str = "/_test/snapshots/{name}/restore/";
const FAULTS: &str = "/_test/faults/";
const REQUESTS: &str = "/_test/requests/";
const WAIT: &str = "/_test/requests/wait/";
const CLOCK: &str = "/_test/clock/";
const MAILS: &str = "/_test/mails/";
const NAMES: &str = "/_test/dns/";
const RECORD: &str = "/_test/dns/{name}/";
const CONSOLE: &str = "/_test/console/";
const ORGANIZATIONS: &str = "/_test/organizations/";
const KEYS: &str = "/_test/keys/";

const ABOUT: About = About {
    title: "Steward: the control plane of a test run",
    description: "Puts the service of `steward test` into the state that a test needs. It needs no key, and answers requests that \
name a loopback host and have no `Origin`: programs of this machine, and no page of a browser. No limit of the service counts \
them. `steward serve` has none of these paths.",
};

/// Returns the routes of the control plane.
pub(super) fn routes() -> Routes {
    let mut routes = Routes::default();
    let needs = Requirements::public("everybody knows the keys of a test run");
    routes.resource("server", "The server of a test run.");
    routes
        .get(ROOT, "test_retrieve", needs, handlers::show)
        .summary("Retrieve what the ready line says, with the time of now.")
        .returns_unversioned::<ReadyAt<'_>>();
    openapi::add_document(&mut routes, SCHEMA, "test_schema_retrieve", ABOUT);
    routes.resource("state", "What the service holds, and its clock.");
    routes
        .post(RESET, "test_reset", needs, handlers::reset)
        .summary("Put everything but the snapshots back to how it was at the start. Waits for requests in progress.")
        .returns_empty(204);
    routes
        .get(SNAPSHOTS, "test_snapshots_list", needs, handlers::list)
        .summary("List the snapshots by name.")
        .returns_unversioned::<SnapshotsBody>();
    routes
        .get(SNAPSHOT, "test_snapshots_retrieve", needs, handlers::retrieve)
        .summary("Retrieve a snapshot.")
        .in_path::<SnapshotName>()
        .returns_unversioned::<SnapshotBody>();
    routes
        .put(SNAPSHOT, "test_snapshots_update", needs, handlers::save)
        .summary("Save the state under a name, in the place of the state that had it. Waits for requests in progress.")
        .in_path::<SnapshotName>()
        .may_return(201)
        .returns_unversioned::<SnapshotBody>();
    routes
        .delete(SNAPSHOT, "test_snapshots_destroy", needs, handlers::delete)
        .summary("Delete a snapshot.")
        .in_path::<SnapshotName>();
    routes
        .post(RESTORE, "test_snapshots_restore", needs, handlers::restore)
        .summary("Put the service back to a snapshot. Waits for requests in progress.")
        .in_path::<SnapshotName>()
        .returns_empty(204);
    routes
        .get(CLOCK, "test_clock_retrieve", needs, handlers::show_clock)
        .summary("Retrieve the time of the service.")
        .returns_unversioned::<ClockBody>();
    routes
        .post(CLOCK, "test_clock_set", needs, handlers::set_clock)
        .summary("Move the clock forward, stop it or let it run. What becomes due is done before the response.")
        .body::<ClockChange>()
        .example(r#"{"advance": "72h", "frozen": true}"#)
        .returns_unversioned::<SetClockBody>();
    routes.resource("requests", "What clients send, and what happens to it.");
    routes
        .get(FAULTS, "test_faults_list", needs, handlers::list_faults)
        .summary("List the faults, with how often each concerned a request and applied.")
        .returns_unversioned::<FaultsBody>();
    routes
        .put(FAULTS, "test_faults_update", needs, handlers::set_faults)
        .summary("Replace all faults. The first that matches a request applies.")
        .body::<FaultRules>()
        .example(
            r#"{"results": [{"match": {"method": "POST"}, "times": 1, "effect": {"status": 503}}]}"#,
        )
        .returns_unversioned::<FaultsBody>();
    routes
        .delete(FAULTS, "test_faults_destroy", needs, handlers::clear_faults)
        .summary("End all faults.");
    let filters = routes
        .get(REQUESTS, "test_requests_list", needs, handlers::list_requests)
        .summary("List the newest requests to the service, oldest first.")
        .returns_unversioned::<EntriesBody>();
    filters
        .query_as::<Text<20>>("method", "Only those with this method.")
        .query_as::<Text<2000>>(
            "path",
            "Only those with this path, in which `*` stands for anything but `/`.",
        )
        .query_as::<Integer<100, 599>>("status", "Only those with this status.")
        .query_as::<Text<200>>("operation", "Only those of this operation.")
        .query_as::<Text<200>>("key", "Only those with the key of this name.")
        .query_as::<Identifier>("since", "Only those after the one with this number.")
        .query_as::<Integer<1, 1000>>("limit", "The maximum number of results. By default 100.");
    routes
        .delete(REQUESTS, "test_requests_destroy", needs, handlers::clear_requests)
        .summary("Forget the requests.");
    routes
        .post(WAIT, "test_requests_wait", needs, handlers::wait_for_requests)
        .summary(
            "Wait until so many requests match. After the time, returns those that did, with 408.",
        )
        .body::<RequestWait>()
        .example(
            r#"{"match": {"method": "POST", "path": "/api/projects/*/dashboards/"}, "count": 2}"#,
        )
        .may_return(408)
        .returns_unversioned::<EntriesBody>();
    routes.resource("outside", "What the service sends to others, and asks others.");
    let to = "Only the mails to this address.";
    routes
        .get(MAILS, "test_mails_list", needs, handlers::list_mails)
        .summary("List the mails, oldest first. Waits for those that are due.")
        .query_as::<Email>("to", to)
        .returns_unversioned::<MailsBody>();
    routes
        .delete(MAILS, "test_mails_destroy", needs, handlers::clear_mails)
        .summary("Forget the mails.")
        .query_as::<Email>("to", to);
    routes
        .get(NAMES, "test_dns_list", needs, handlers::list_names)
        .summary("List the names that DNS look-ups find. No name server is asked.")
        .returns_unversioned::<NamesBody>();
    routes
        .delete(NAMES, "test_dns_destroy_all", needs, handlers::clear_names)
        .summary("Forget all names.");
    routes
        .put(RECORD, "test_dns_update", needs, handlers::set_name)
        .summary("Set what DNS look-ups of a name find.")
        .in_path::<RecordName>()
        .body::<DnsAnswer>()
        .example(r#"{"txt": ["the challenge of the domain"]}"#)
        .returns_empty(204);
    routes
        .delete(RECORD, "test_dns_destroy", needs, handlers::delete_name)
        .summary("Forget a name.")
        .in_path::<RecordName>();
    routes.resource("people", "What the API gives to nobody but an operator.");
    routes
        .post(ORGANIZATIONS, "test_organizations_create", needs, handlers::add_organization)
        .summary("Create an organization for one test, with projects, people and their keys.")
        .body::<TestOrganization>()
        .example(r#"{"name": "Acme", "projects": 2, "members": [{"level": 8}]}"#)
        .returns::<TestOrganizationBody>(201);
    routes
        .get(CONSOLE, "test_console_retrieve", needs, handlers::open_console)
        .summary("Lead a browser to the console, signed in as a user.")
        .query_as::<Email>("email", "The address of the user. By default the only one.")
        .returns_empty(303);
    routes
        .post(KEYS, "test_keys_create", needs, handlers::add_key)
        .summary("Create a key of any user, for tests of what it cannot do.")
        .body::<TestKey>()
        .example(r#"{"email": "member@example.com", "scopes": ["dashboard:read"]}"#)
        .returns::<TestKeyBody>(201);
    routes.without_dry_runs();
    inspector::routes(&mut routes);
    console::asset_routes(&mut routes);
    routes
}

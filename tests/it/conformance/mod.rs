//! `docs/conformance.md` is generated, and current: every operation and field is on it, and every test that it names exists.

mod documented;
mod evidence;
mod fields;
mod page;
mod schema_words;
mod test_names;

use crate::support::generated_page::assert_current;

use evidence::{gaps, lines, quoted};
use test_names::{is_test, means_a_test};

const EVIDENCE: &str = include_str!("evidence.txt");
/// The tests that `.ci/full` leaves out when the workspaces of the tests lie in PostgreSQL: they are about the data file itself, or
/// count every write, and a lease is one.
const ONLY_ON_FILES: &str = include_str!("../only_on_files.txt");
/// Other pages that name tests.
const PAGES: [&str; 2] =
    [include_str!("../../../SECURITY.md"), include_str!("../../../docs/clients.md")];

#[test]
fn conformance_page_is_current() {
    let page = page::page(&lines(EVIDENCE));
    assert_current("docs/conformance.md", &page, "cargo test --test it conformance_page");
}

#[test]
fn every_operation_has_evidence_and_every_name_in_it_exists() {
    let gaps = gaps(EVIDENCE);
    assert!(gaps.is_empty(), "\n{}", gaps.join("\n"));
}

#[test]
fn errors_in_the_evidence_are_found() {
    for (right, wrong, gap) in [
        ("GET /api/users/@me/: ", "A rule: ", "no line names GET /api/users/@me/"),
        ("PATCH /api/users/@me/: ", "PUT /api/users/@me/: ", "lacks PUT /api/users/@me/"),
        ("Domain.has_saml: ", "Domain.saml: ", "lacks Domain.saml"),
        ("`DomainPatch.domain`", "`DomainPatch.nothing`", "lacks DomainPatch.nothing"),
        ("Domain.has_saml: ", "Domain.domain: ", "Domain.domain is repeated"),
        ("domains::domain_name_is_immutable", "domains::nothing", "no test domains::nothing"),
        ("domains::domain_name_is_immutable", "domains::add", "no test domains::add"),
        ("domains::domain_name_is_immutable", "nowhere::x", "no test nowhere::x"),
        (" invites::any_member_can_delete_any_invite", "", "no test shows it"),
    ] {
        let broken = EVIDENCE.replace(right, wrong);
        assert_ne!(broken, EVIDENCE, "the evidence lacks {right}");
        let found = gaps(&broken);
        assert!(found.iter().any(|it| it.ends_with(gap)), "{gap}: {found:#?}");
    }
}

#[test]
fn tests_named_on_other_pages_exist() {
    let of_page = |page: &'static str| -> Vec<&'static str> {
        quoted(page).into_iter().filter(|name| means_a_test(name)).collect()
    };
    let only_on_files: Vec<_> = ONLY_ON_FILES.lines().collect();
    for named in PAGES.map(of_page).into_iter().chain([only_on_files]) {
        let missing: Vec<_> = named.iter().filter(|name| !is_test(name)).collect();
        assert!(!named.is_empty() && missing.is_empty(), "{missing:#?}");
    }
}

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const TOTAL: usize = 1024;

fn client(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn keyed_payer(number: u128) -> Payer {
    Payer::Keyed(Consumer::Organization(Uuid::from_u128(number)))
}

fn page_payer(number: u128) -> Payer {
    Payer::PublicPage(Consumer::Organization(Uuid::from_u128(number)))
}

fn refused(result: Result<Charge, BudgetExceeded>) -> Account {
    result.err().expect("a refusal").0
}

#[test]
fn clients_and_organizations_get_a_quarter_and_anonymous_clients_an_eighth() {
    let budget = MemoryBudget::new(TOTAL);
    let _first = budget.charge(client(1), keyed_payer(1), 200).unwrap();
    assert!(matches!(refused(budget.charge(client(1), keyed_payer(2), 57)), Account::Client(_)));
    assert!(matches!(refused(budget.charge(client(2), keyed_payer(1), 57)), Account::Keyed(_)));
    let _second = budget.charge(client(2), keyed_payer(2), 256).unwrap();
    let _visitor = budget.charge(client(1), Payer::Anonymous, 100).unwrap();
    assert!(matches!(refused(budget.charge(client(1), page_payer(3), 29)), Account::Anonymous(_)));
    let _third = budget.charge(client(1), page_payer(3), 28).unwrap();
    assert_eq!(budget.used(), 200 + 256 + 100 + 28);
}

#[test]
fn anonymous_client_cannot_use_up_the_share_of_an_organization_or_its_pages() {
    let budget = MemoryBudget::new(TOTAL);
    let _all = budget.charge(client(1), page_payer(1), 128).unwrap();
    assert!(budget.charge(client(1), page_payer(1), 1).is_err());
    let _page = budget.charge(client(2), page_payer(1), 128).unwrap();
    let _member = budget.charge(client(1), keyed_payer(1), 256).unwrap();
}

#[test]
fn organizations_together_cannot_exceed_the_total_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let charges: Vec<_> =
        (1..=4).map(|n| budget.charge(client(n), keyed_payer(n.into()), 256).unwrap()).collect();
    assert_eq!(refused(budget.charge(client(5), keyed_payer(5), 1)), Account::Total);
    drop(charges);
    assert!(budget.charge(client(5), keyed_payer(5), 1).is_ok());
}

#[test]
fn single_charge_may_exceed_its_share_up_to_half_of_the_budget() {
    let budget = MemoryBudget::new(TOTAL);
    assert!(matches!(
        refused(budget.charge(client(1), keyed_payer(1), TOTAL / 2 + 1)),
        Account::Client(_)
    ));
    let large = budget.charge(client(1), keyed_payer(1), TOTAL / 2).unwrap();
    let _others: Vec<_> = (2..4)
        .map(|n| budget.charge(client(n), keyed_payer(n.into()), TOTAL / 4).unwrap())
        .collect();
    drop(large);
    let mut body = budget.charge(client(1), keyed_payer(1), 1).unwrap();
    body.resize(300).expect("alone");
    assert!(body.resize(TOTAL / 2 + 1).is_err());
    assert_eq!(budget.used(), TOTAL / 2 + 300, "a refused growth changes nothing");
}

#[test]
fn anonymous_clients_together_get_half_of_the_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let _visitors: Vec<_> =
        (1..5).map(|n| budget.charge(client(n), page_payer(n.into()), 128).unwrap()).collect();
    assert_eq!(refused(budget.charge(client(5), page_payer(5), 1)), Account::AllAnonymous);
    assert_eq!(refused(budget.charge(client(5), Payer::Anonymous, 1)), Account::AllAnonymous);
    let page = Bytes::from(vec![0; 1]);
    assert_eq!(
        budget.charge_shared(&page, page_payer(6)).err(),
        Some(BudgetExceeded(Account::AllAnonymous))
    );
    let _members: Vec<_> =
        (6..8).map(|n| budget.charge(client(n), keyed_payer(n.into()), 256).unwrap()).collect();
}

#[test]
fn unchecked_growth_is_counted_and_overdraft_does_not_reduce_the_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let mut forced = budget.charge(client(1), keyed_payer(1), 1).unwrap();
    forced.resize_unchecked(TOTAL / 2 + 1);
    assert!(budget.charge(client(1), keyed_payer(1), 1).is_err() && forced.resize(TOTAL).is_err());
    let _overdrawn = budget.overdraw(TOTAL / 8).unwrap();
    assert_eq!(refused(budget.overdraw(1)), Account::Overdraft);
    assert_eq!(budget.used(), TOTAL / 2 + 1 + TOTAL / 8);
    forced.resize(TOTAL / 4).unwrap();
    let _others: Vec<_> = (2..5)
        .map(|n| budget.charge(client(n), keyed_payer(n.into()), TOTAL / 4).unwrap())
        .collect();
}

#[test]
fn addresses_of_an_ipv6_network_share_one_account() {
    let budget = MemoryBudget::new(TOTAL);
    let _first = budget.charge("2001:db8::1".parse().unwrap(), keyed_payer(1), 256).unwrap();
    assert!(budget.charge("2001:db8::2".parse().unwrap(), keyed_payer(2), 1).is_err());
    assert!(budget.charge("2001:db8:0:1::2".parse().unwrap(), keyed_payer(2), 1).is_ok());
}

#[test]
fn shared_buffer_is_charged_once_until_its_last_holder_drops_it() {
    let budget = MemoryBudget::new(TOTAL);
    let page = Bytes::from(vec![0; 200]);
    let pins: Vec<_> =
        (0..10).map(|_| budget.charge_shared(&page, page_payer(1)).unwrap()).collect();
    assert_eq!(budget.used(), 200);
    let other = Bytes::from(vec![1; 200]);
    assert!(matches!(
        budget.charge_shared(&other, page_payer(1)),
        Err(BudgetExceeded(Account::PublicPages(_)))
    ));
    drop(pins);
    assert_eq!(budget.used(), 0);
    let _other = budget.charge_shared(&other, page_payer(1)).unwrap();
    assert_eq!(budget.0.shared_buffers.lock().unwrap().len(), 1, "the dropped pin is removed");
}

#[derive(Debug, Clone)]
enum Step {
    Take(u8, u128, bool, usize),
    Split(usize, usize),
    Resize(usize, usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, 0..4_u128, any::<bool>(), 0..400_usize)
            .prop_map(|(client, tenant, keyed, bytes)| Step::Take(client, tenant, keyed, bytes)),
        (any::<usize>(), 0..200_usize).prop_map(|(at, bytes)| Step::Split(at, bytes)),
        (any::<usize>(), 0..400_usize).prop_map(|(at, bytes)| Step::Resize(at, bytes)),
        any::<usize>().prop_map(Step::Drop),
    ]
}

proptest! {
    /// For any sequence of take, split, resize and drop: each account counts what is held, and nothing at the
    /// end.
    #[test]
    fn memory_accounts_match_the_held_charges(steps in prop::collection::vec(step(), 1..100)) {
        let budget = MemoryBudget::new(TOTAL);
        let mut held: Vec<Charge> = Vec::new();
        for step in steps {
            let at = |at: usize, held: &[Charge]| at.checked_rem(held.len());
            match step {
                Step::Take(from, of, keyed, bytes) => {
                    let payer = if keyed { keyed_payer(of) } else { page_payer(of) };
                    held.extend(budget.charge(client(from), payer, bytes));
                }
                Step::Split(charge, bytes) => if let Some(at) = at(charge, &held) {
                    let part = held[at].split(bytes);
                    held.push(part);
                },
                Step::Resize(charge, bytes) => if let Some(at) = at(charge, &held) {
                    let before = held[at].bytes;
                    let done = held[at].resize(bytes).is_ok();
                    prop_assert_eq!(held[at].bytes, if done { bytes } else { before });
                },
                Step::Drop(charge) => if let Some(at) = at(charge, &held) {
                    drop(held.swap_remove(at));
                },
            }
            let mut expected: HashMap<Account, usize> = HashMap::new();
            for charge in &held {
                for account in charge.accounts.iter().flatten() {
                    *expected.entry(*account).or_default() += charge.bytes;
                }
            }
            expected.retain(|_, bytes| *bytes > 0);
            prop_assert_eq!(&*budget.lock(), &expected);
        }
        drop(held);
        prop_assert!(budget.lock().is_empty());
    }
}

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const TOTAL: usize = 1024;

/// Returns a client, with a key of the tenant with this number, or without one for 0.
fn payer(client: u8, tenant: u8) -> Payer {
    from(IpAddr::from([192, 0, 2, client]), tenant)
}

fn from(client: IpAddr, tenant: u8) -> Payer {
    let tenant = (tenant > 0).then(|| Consumer::Organization(Uuid::from_u128(tenant.into())));
    Payer { client, tenant }
}

fn refused(result: Result<Charge, BudgetExceeded>) -> Account {
    result.err().expect("a refusal").0
}

#[test]
fn each_client_and_each_tenant_gets_a_quarter() {
    let budget = MemoryBudget::new(TOTAL);
    let _first = budget.charge(payer(1, 1), 200).unwrap();
    let over = refused(budget.charge(payer(1, 2), 57));
    assert!(matches!(over, Account::Client { has_key: true, .. }));
    assert!(matches!(refused(budget.charge(payer(2, 1), 57)), Account::Tenant(_)));
    let _second = budget.charge(payer(2, 2), 256).unwrap();
    assert_eq!(budget.used(), 200 + 256);
}

#[test]
fn requests_without_a_key_use_up_no_share_of_members() {
    let budget = MemoryBudget::new(TOTAL);
    let _visitor = budget.charge(payer(1, 0), 256).unwrap();
    let over = refused(budget.charge(payer(1, 0), 1));
    assert!(matches!(over, Account::Client { has_key: false, .. }));
    let _member = budget.charge(payer(1, 1), 256).unwrap();
}

#[test]
fn organizations_together_cannot_exceed_the_total_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let charges: Vec<_> = (1..=4).map(|n| budget.charge(payer(n, n), 256).unwrap()).collect();
    assert_eq!(refused(budget.charge(payer(5, 5), 1)), Account::Total);
    drop(charges);
    assert!(budget.charge(payer(5, 5), 1).is_ok());
}

#[test]
fn single_charge_may_exceed_its_share_up_to_half_of_the_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let over = refused(budget.charge(payer(1, 1), TOTAL / 2 + 1));
    assert!(matches!(over, Account::Client { .. }));
    let large = budget.charge(payer(1, 1), TOTAL / 2).unwrap();
    let _others: Vec<_> = (2..4).map(|n| budget.charge(payer(n, n), TOTAL / 4).unwrap()).collect();
    drop(large);
    let mut body = budget.charge(payer(1, 1), 1).unwrap();
    body.resize(300).expect("alone");
    assert!(body.resize(TOTAL / 2 + 1).is_err());
    assert_eq!(budget.used(), TOTAL / 2 + 300, "a refused growth changes nothing");
}

#[test]
fn clients_without_a_key_together_get_half_of_the_budget() {
    let budget = MemoryBudget::new(TOTAL);
    let _visitors: Vec<_> = (1..3).map(|n| budget.charge(payer(n, 0), 256).unwrap()).collect();
    assert_eq!(refused(budget.charge(payer(3, 0), 1)), Account::Keyless);
    let page = Bytes::from(vec![0; 1]);
    let over = budget.charge_shared(payer(3, 0), 1, &page).err();
    assert_eq!(over, Some(BudgetExceeded(Account::Keyless)));
    let _members: Vec<_> = (3..5).map(|n| budget.charge(payer(n, n), 256).unwrap()).collect();
}

#[test]
fn responses_to_completed_writes_may_exceed_each_limit_by_an_eighth() {
    let budget = MemoryBudget::new(TOTAL);
    let mut forced = budget.charge(payer(1, 1), 1).unwrap();
    forced.resize_unchecked(TOTAL / 4);
    assert!(budget.charge(payer(1, 1), 1).is_err());
    let completed = |payer, bytes| budget.for_request(payer, 0).into_response(bytes);
    let response = completed(payer(1, 1), TOTAL / 8).unwrap();
    assert!(completed(payer(1, 1), 1).is_err());
    drop(response);
    forced.resize_unchecked(TOTAL);
    assert_eq!(refused(budget.charge(payer(2, 2), 1)), Account::Total);
    let _response = completed(payer(2, 2), TOTAL / 8).unwrap();
    assert_eq!(refused(completed(payer(3, 3), 1)), Account::Total);
    assert_eq!(budget.used(), TOTAL + TOTAL / 8);
}

#[test]
fn reserved_response_is_charged_at_its_size_in_place_of_the_body() {
    let budget = MemoryBudget::new(8 * MIN_COUNTED_SIZE);
    let memory = budget.for_request(payer(1, 1), 0);
    memory.count_body(MIN_COUNTED_SIZE + 1).unwrap();
    memory.reserve(100).unwrap();
    assert_eq!(budget.used(), MIN_COUNTED_SIZE + 101);
    let response = memory.into_response(4 * MIN_COUNTED_SIZE).unwrap();
    assert_eq!(budget.used(), 4 * MIN_COUNTED_SIZE);
    drop(response);
    assert_eq!(budget.used(), 0);
}

#[test]
fn addresses_of_an_ipv6_network_share_one_account() {
    let budget = MemoryBudget::new(TOTAL);
    let _first = budget.charge(from("2001:db8::1".parse().unwrap(), 1), 256).unwrap();
    assert!(budget.charge(from("2001:db8::2".parse().unwrap(), 2), 1).is_err());
    assert!(budget.charge(from("2001:db8:0:1::2".parse().unwrap(), 2), 1).is_ok());
}

#[test]
fn shared_buffer_is_charged_once_until_its_last_holder_drops_it() {
    let budget = MemoryBudget::new(TOTAL);
    let page = Bytes::from(vec![0; 200]);
    let held: Vec<_> =
        (0..10).map(|n| budget.charge_shared(payer(n, 0), 200, &page).unwrap()).collect();
    assert_eq!(budget.used(), 200);
    let over = budget.charge_shared(payer(0, 0), 200, &page);
    assert!(matches!(over, Err(BudgetExceeded(Account::Client { .. }))));
    drop(held);
    assert_eq!(budget.used(), 0);
    let other = Bytes::from(vec![1; 200]);
    let _other = budget.charge_shared(payer(0, 0), 200, &other).unwrap();
    assert_eq!(budget.0.shared_buffers.lock().unwrap().len(), 1, "the dropped one is removed");
}

#[derive(Debug, Clone)]
enum Step {
    Take(u8, u8, usize),
    Split(usize, usize),
    Resize(usize, usize),
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, 0..4_u8, 0..400_usize)
            .prop_map(|(client, tenant, bytes)| Step::Take(client, tenant, bytes)),
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
                Step::Take(from, of, bytes) => {
                    held.extend(budget.charge(payer(from, of), bytes));
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

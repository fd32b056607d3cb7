//! A memory budget for data in transfer: large responses until they are sent, and large request bodies until their
//! request is answered. Every client and every tenant has a share of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::error::Error;
use crate::fair_queue::{Consumer, client_network};

/// Transfers of at most this many bytes are not counted.
pub const MIN_COUNTED_SIZE: usize = 64 * 1024;

/// The `Retry-After` of a request that exceeds the budget, in seconds.
const RETRY_AFTER: u32 = 1;

/// The party whose share of the budget is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payer {
    /// A client without a key that reads data of no tenant.
    Anonymous,
    /// A client with a key of this tenant.
    Keyed(Consumer),
    /// A client without a key that reads a public page of this tenant.
    PublicPage(Consumer),
}

/// A counter with a limit of its own. Requests with and without a key use separate accounts, so that public traffic
/// never uses up the share of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    /// All transfers.
    Total,
    /// A client network, for requests with a key.
    Client(IpAddr),
    /// A client network, for requests without a key.
    Anonymous(IpAddr),
    /// A tenant, for requests with a key.
    Keyed(Consumer),
    /// A tenant's public pages.
    PublicPages(Consumer),
    /// All requests without a key.
    AllAnonymous,
    /// Responses to completed writes, beyond the shares of their clients and tenants.
    Overdraft,
}

/// The accounts that a charge is counted in.
type Accounts = [Option<Account>; 4];

/// The memory budget. Clones share one budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    /// The size of the budget, in bytes.
    total: usize,
    /// The bytes in use. An account with no bytes has no entry.
    used: Mutex<HashMap<Account, usize>>,
    /// The charges of shared buffers in transfer, by buffer address.
    shared_buffers: Mutex<HashMap<usize, Weak<Charge>>>,
}

/// The error for a charge that exceeds the budget or a share of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExceeded(Account);

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Account::Total => "the transfer memory is used up",
            Account::Client(_) => "a client's share of the transfer memory is used up",
            Account::Anonymous(_) => "a keyless client's share of the transfer memory is used up",
            Account::Keyed(_) => "a tenant's share of the transfer memory is used up",
            Account::PublicPages(_) => {
                "the share of a tenant's public pages in the transfer memory is used up"
            }
            Account::AllAnonymous => "the keyless clients' share of the transfer memory is used up",
            Account::Overdraft => "the share of completed writes in the transfer memory is used up",
        })
    }
}

impl From<BudgetExceeded> for Error {
    fn from(over: BudgetExceeded) -> Self {
        Self::overloaded(RETRY_AFTER, over)
    }
}

impl MemoryBudget {
    /// Creates a budget of `total` bytes.
    pub fn new(total: usize) -> Self {
        let (used, shared_buffers) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { total, used, shared_buffers }))
    }

    /// Charges `bytes` for a request of this client, or for its response.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if the charge exceeds the budget or a share of it. A transfer that is larger than a share
    /// succeeds if it is the only one in that share and takes at most half of the budget.
    pub fn charge(
        &self,
        client: IpAddr,
        payer: Payer,
        bytes: usize,
    ) -> Result<Charge, BudgetExceeded> {
        let ChargeAccounts { client, consumer, keyless } = ChargeAccounts::of(client, payer);
        self.charge_accounts([Some(Account::Total), client, consumer, keyless], bytes)
    }

    /// Charges `bytes` to the client's share only, because [`charge_shared`](Self::charge_shared) charges the budget
    /// for the buffer. The client pays for the whole buffer while it holds any part of it.
    ///
    /// # Errors
    /// As [`charge`](Self::charge).
    pub fn charge_client(
        &self,
        client: IpAddr,
        payer: Payer,
        bytes: usize,
    ) -> Result<Charge, BudgetExceeded> {
        self.charge_accounts([ChargeAccounts::of(client, payer).client, None, None, None], bytes)
    }

    /// Charges `bytes` for the response to a completed write whose client has no share left. They are counted
    /// separately from the budget.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if these charges would exceed an eighth of the budget.
    pub fn overdraw(&self, bytes: usize) -> Result<Charge, BudgetExceeded> {
        self.charge_accounts([Some(Account::Overdraft), None, None, None], bytes)
    }

    /// Charges a buffer that several responses share. It is counted once, until the last response drops it. The
    /// tenant of the first response pays.
    ///
    /// # Errors
    /// As [`charge`](Self::charge).
    pub fn charge_shared(
        &self,
        buffer: &Bytes,
        payer: Payer,
    ) -> Result<Arc<Charge>, BudgetExceeded> {
        let address = buffer.as_ptr().addr();
        let mut pins = self.0.shared_buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pin) = pins.get(&address).and_then(Weak::upgrade) {
            return Ok(pin);
        }
        let ChargeAccounts { consumer, keyless, .. } =
            ChargeAccounts::of(IpAddr::from([0, 0, 0, 0]), payer);
        let pin =
            self.charge_accounts([Some(Account::Total), consumer, keyless, None], buffer.len())?;
        let pin = Arc::new(pin);
        pins.retain(|_, pin| pin.strong_count() > 0);
        pins.insert(address, Arc::downgrade(&pin));
        Ok(pin)
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        let used = self.lock();
        [Account::Total, Account::Overdraft].iter().filter_map(|account| used.get(account)).sum()
    }

    fn charge_accounts(&self, accounts: Accounts, bytes: usize) -> Result<Charge, BudgetExceeded> {
        let mut charge = Charge { budget: self.clone(), accounts, bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, usize>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit of an account, in bytes. Clients without a key have at most half of the budget together. One of them
    /// has at most half of a tenant's share for public pages.
    fn limit(&self, account: Account) -> usize {
        match account {
            Account::Total => self.0.total,
            Account::AllAnonymous => self.0.total / 2,
            Account::Client(_) | Account::Keyed(_) | Account::PublicPages(_) => self.0.total / 4,
            Account::Anonymous(_) | Account::Overdraft => self.0.total / 8,
        }
    }
}

/// The accounts that a request is charged to, besides the total.
struct ChargeAccounts {
    client: Option<Account>,
    consumer: Option<Account>,
    keyless: Option<Account>,
}

impl ChargeAccounts {
    fn of(client: IpAddr, payer: Payer) -> Self {
        let client = client_network(client);
        let (client, consumer) = match payer {
            Payer::Anonymous => (Account::Anonymous(client), None),
            Payer::Keyed(tenant) => (Account::Client(client), Some(Account::Keyed(tenant))),
            Payer::PublicPage(tenant) => {
                (Account::Anonymous(client), Some(Account::PublicPages(tenant)))
            }
        };
        let keyless = matches!(client, Account::Anonymous(_)).then_some(Account::AllAnonymous);
        Self { client: Some(client), consumer, keyless }
    }
}

/// Counted bytes. Dropping the charge releases them.
pub struct Charge {
    budget: MemoryBudget,
    accounts: Accounts,
    bytes: usize,
}

impl Charge {
    /// Returns the counted bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the smallest limit of this charge's accounts, in bytes.
    pub fn smallest_limit(&self) -> usize {
        let limits = self.accounts.iter().flatten().map(|account| self.budget.limit(*account));
        limits.min().unwrap_or(usize::MAX)
    }

    /// Changes the charge to `bytes`.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if that exceeds the budget or a share of it. The charge is then unchanged.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        if bytes > self.bytes {
            let mut used = self.budget.lock();
            let may_be_alone = bytes <= self.budget.0.total / 2;
            for account in self.accounts.iter().flatten() {
                let others = used.get(account).map_or(0, |used| used - self.bytes);
                let is_over = others.saturating_add(bytes) > self.budget.limit(*account);
                if is_over && (others > 0 || !may_be_alone) {
                    return Err(BudgetExceeded(*account));
                }
            }
            self.count(&mut used, bytes);
            drop(used);
            self.bytes = bytes;
        } else {
            self.resize_unchecked(bytes);
        }
        Ok(())
    }

    /// Changes the charge to `bytes`, even beyond the budget.
    pub fn resize_unchecked(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.count(&mut self.budget.lock(), bytes);
            self.bytes = bytes;
        }
    }

    fn count(&self, used: &mut HashMap<Account, usize>, bytes: usize) {
        for account in self.accounts.iter().flatten() {
            match used.entry(*account) {
                Entry::Occupied(mut entry) => {
                    *entry.get_mut() = *entry.get() - self.bytes + bytes;
                    if *entry.get() == 0 {
                        entry.remove();
                    }
                }
                Entry::Vacant(entry) => drop(entry.insert(bytes)),
            }
        }
    }

    /// Moves `bytes`, or all if there are fewer, into a new charge.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), accounts: self.accounts, bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.resize_unchecked(0);
    }
}

#[cfg(test)]
mod tests;

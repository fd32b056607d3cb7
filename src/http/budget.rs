//! A budget of memory for what is in flight: large answers until their bytes leave, and large request bodies
//! until their request is answered. Each client and each tenant has a share of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::error::Error;
use crate::fair::{Consumer, network};

/// What takes no more bytes than this is not counted.
pub const UNCOUNTED: usize = 64 * 1024;

/// After how many seconds a refused client may try again.
const RETRY_AFTER: u32 = 1;

/// On whose behalf memory is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payer {
    /// A client without a key, who reads what belongs to no tenant.
    Visitor,
    /// A request with a key.
    Tenant(Consumer),
    /// A client without a key, who reads a public page of this tenant.
    PublicPage(Consumer),
}

/// What bytes are counted in. Clients with and without a key, and a tenant's members and its public pages, have
/// separate accounts, so that keyless readers never use up what members need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    /// Everything in flight.
    Total,
    /// A client network, for requests with a key.
    Client(IpAddr),
    /// A client network, for requests without a key.
    Visitor(IpAddr),
    /// A tenant, for requests with a key.
    Tenant(Consumer),
    /// A tenant's public pages.
    PublicPages(Consumer),
    /// All requests without a key.
    Keyless,
    /// Answers to changes that were made, beyond the shares of their clients and tenants.
    Overdraft,
}

/// The accounts that one charge is counted in.
type Accounts = [Option<Account>; 4];

/// The budget. Clones share it.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    /// In bytes, for everything in flight.
    total: usize,
    /// Bytes in flight; an account without any has no entry.
    used: Mutex<HashMap<Account, usize>>,
    /// Shared buffers in flight, by address.
    pins: Mutex<HashMap<usize, Weak<Charge>>>,
}

/// The budget, or a share of it, is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget(Account);

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Account::Total => "the transfer memory is in use",
            Account::Client(_) => "a client's share of the transfer memory is in use",
            Account::Visitor(_) => "a keyless client's share of the transfer memory is in use",
            Account::Tenant(_) => "a tenant's share of the transfer memory is in use",
            Account::PublicPages(_) => {
                "the share of a tenant's public pages of the transfer memory is in use"
            }
            Account::Keyless => "the keyless clients' share of the transfer memory is in use",
            Account::Overdraft => "the share of done changes of the transfer memory is in use",
        })
    }
}

impl From<OverBudget> for Error {
    fn from(over: OverBudget) -> Self {
        Self::overloaded(RETRY_AFTER, over)
    }
}

impl MemoryBudget {
    /// A budget of `total` bytes, all free.
    pub fn new(total: usize) -> Self {
        let (used, pins) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { total, used, pins }))
    }

    /// Takes `bytes` for an answer to this client, or for its request.
    ///
    /// # Errors
    /// [`OverBudget`] where that exceeds the budget or a share of it. An answer that exceeds a share by itself is taken
    /// while nothing else is counted in that share, if it is at most half of the budget.
    pub fn take(&self, client: IpAddr, payer: Payer, bytes: usize) -> Result<Charge, OverBudget> {
        let Owners { client, tenant, keyless } = Owners::of(client, payer);
        self.charge([Some(Account::Total), client, tenant, keyless], bytes)
    }

    /// Takes `bytes` of the client's share alone, for what [`pin`](Self::pin) counts in the budget. The client pays for
    /// the whole of a buffer for as long as it holds a part of it.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_of_client(
        &self,
        client: IpAddr,
        payer: Payer,
        bytes: usize,
    ) -> Result<Charge, OverBudget> {
        self.charge([Owners::of(client, payer).client, None, None, None], bytes)
    }

    /// Takes `bytes` for the answer to a change that was made, whose client has no share left. They are counted
    /// beside the budget.
    ///
    /// # Errors
    /// [`OverBudget`] where such answers take an eighth of the budget already.
    pub fn overdraw(&self, bytes: usize) -> Result<Charge, OverBudget> {
        self.charge([Some(Account::Overdraft), None, None, None], bytes)
    }

    /// Counts a buffer that several answers share: once, for as long as one of them holds a part of it. The tenant
    /// of the first of them pays.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn pin(&self, buffer: &Bytes, payer: Payer) -> Result<Arc<Charge>, OverBudget> {
        let address = buffer.as_ptr().addr();
        let mut pins = self.0.pins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pin) = pins.get(&address).and_then(Weak::upgrade) {
            return Ok(pin);
        }
        let Owners { tenant, keyless, .. } = Owners::of(IpAddr::from([0, 0, 0, 0]), payer);
        let pin = self.charge([Some(Account::Total), tenant, keyless, None], buffer.len())?;
        let pin = Arc::new(pin);
        pins.retain(|_, pin| pin.strong_count() > 0);
        pins.insert(address, Arc::downgrade(&pin));
        Ok(pin)
    }

    /// How many bytes are in flight.
    pub fn used(&self) -> usize {
        let used = self.lock();
        [Account::Total, Account::Overdraft].iter().filter_map(|account| used.get(account)).sum()
    }

    fn charge(&self, accounts: Accounts, bytes: usize) -> Result<Charge, OverBudget> {
        let mut charge = Charge { budget: self.clone(), accounts, bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Account, usize>> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes an account may have. One keyless client has half of what the public pages of a tenant have, and
    /// all keyless clients together half of the budget: members are served beside any number of them.
    fn limit(&self, account: Account) -> usize {
        match account {
            Account::Total => self.0.total,
            Account::Keyless => self.0.total / 2,
            Account::Client(_) | Account::Tenant(_) | Account::PublicPages(_) => self.0.total / 4,
            Account::Visitor(_) | Account::Overdraft => self.0.total / 8,
        }
    }
}

/// The accounts of a client and of the tenant that it reads.
struct Owners {
    client: Option<Account>,
    tenant: Option<Account>,
    keyless: Option<Account>,
}

impl Owners {
    fn of(client: IpAddr, payer: Payer) -> Self {
        let client = network(client);
        let (client, tenant) = match payer {
            Payer::Visitor => (Account::Visitor(client), None),
            Payer::Tenant(tenant) => (Account::Client(client), Some(Account::Tenant(tenant))),
            Payer::PublicPage(tenant) => {
                (Account::Visitor(client), Some(Account::PublicPages(tenant)))
            }
        };
        let keyless = matches!(client, Account::Visitor(_)).then_some(Account::Keyless);
        Self { client: Some(client), tenant, keyless }
    }
}

/// Bytes that are counted; dropping it gives them back.
pub struct Charge {
    budget: MemoryBudget,
    accounts: Accounts,
    bytes: usize,
}

impl Charge {
    /// How many bytes are counted.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The smallest share that it is counted in, in bytes.
    pub fn share(&self) -> usize {
        let limits = self.accounts.iter().flatten().map(|account| self.budget.limit(*account));
        limits.min().unwrap_or(usize::MAX)
    }

    /// Counts `bytes` in place of what was counted so far.
    ///
    /// # Errors
    /// [`OverBudget`] where that exceeds the budget or a share of it; the charge is then what it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if bytes > self.bytes {
            let mut used = self.budget.lock();
            let may_be_alone = bytes <= self.budget.0.total / 2;
            for account in self.accounts.iter().flatten() {
                let others = used.get(account).map_or(0, |used| used - self.bytes);
                let is_over = others.saturating_add(bytes) > self.budget.limit(*account);
                if is_over && (others > 0 || !may_be_alone) {
                    return Err(OverBudget(*account));
                }
            }
            self.count(&mut used, bytes);
            drop(used);
            self.bytes = bytes;
        } else {
            self.force(bytes);
        }
        Ok(())
    }

    /// Counts `bytes` in place of what was counted so far, even beyond the budget.
    pub fn force(&mut self, bytes: usize) {
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

    /// Splits off a charge of `bytes`, or of all if there are fewer.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), accounts: self.accounts, bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.force(0);
    }
}

#[cfg(test)]
mod tests;

//! Faults that a test asks for: responses that fail, come late, come in part or not at all, and mails that are refused.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::secret::{Seed, SeededRng};
use crate::input::{
    Choice, FieldType, Flag, Identifier, Integer, JsonObject, ListOf, Nested, Required, Schema,
    Text, choices, input,
};
use crate::mail::transport::SendError;

use super::pattern::matches_pattern;

/// The maximum number of rules.
const MAX_RULES: usize = 100;
/// The longest delay, in milliseconds.
const MAX_DELAY: i64 = 600_000;
const MAX_COUNT: i64 = 1_000_000_000;

choices! {
    /// When a connection ends without a response: before anything was done, or after it.
    pub(super) struct Drop: &'static str = ["before", "after_commit"];
    /// The reply of a mail server that refuses a mail: for now, or for good.
    pub(super) struct Refusal: i64 = [451, 550];
}

/// A number from 0 to 1.
pub(super) struct Probability;

impl FieldType for Probability {
    type Value = f64;

    fn read(value: &Value) -> Result<f64> {
        let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        number.ok_or_else(|| Error::invalid("invalid_input", "Write a number from 0 to 1."))
    }

    fn schema() -> Schema {
        use utoipa::openapi::schema::{ObjectBuilder, Type};
        ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).maximum(Some(1)).into()
    }
}

input! {
    /// Which requests or mails a fault concerns: those for which each of these holds.
    pub(super) struct FaultMatch {
        /// The method.
        method: Text<20>,
        /// The path. `*` stands for anything but `/`.
        path: Text<2000>,
        /// The operation of the OpenAPI document.
        operation: Text<200>,
        /// The address of the user, or the name of the key.
        caller: Text<254>,
        /// The address of a mail. `*` stands for anything but `@`. The fault then concerns no request.
        mail: Text<254>,
    }
}

input! {
    /// What happens. Exactly one of `status`, `delay_ms`, `drop`, `truncate`, `stall` and `smtp`.
    pub(super) struct FaultEffect {
        /// The status of an error, with which the request fails before anything is done.
        status: Integer<400, 599>,
        /// The `code` of the error, instead of that of the status.
        code: Text<100>,
        /// The `detail` of the error, instead of that of the status.
        detail: Text<2000>,
        /// The `Retry-After` of the error, in seconds.
        retry_after: Integer<0, 86_400>,
        /// How long the request waits before it is answered, in milliseconds of real time.
        delay_ms: Integer<0, MAX_DELAY>,
        /// The connection ends without a response: `before` anything is done, or `after_commit`.
        drop: Choice<Drop>,
        /// The connection ends after so many bytes of the body of the response.
        truncate: Integer<0, MAX_COUNT>,
        /// The headers of the response arrive, and its body never does.
        stall: Flag,
        /// The reply with which a mail is refused: 451 or 550.
        smtp: Choice<Refusal>,
    }
}

input! {
    /// A fault.
    pub(super) struct FaultRule {
        /// Ignored: a rule is numbered by its place.
        id: Identifier,
        /// Which requests or mails it concerns. By default all requests.
        r#match: Nested<FaultMatch>,
        /// How many of them it skips first.
        after: Integer<0, MAX_COUNT>,
        /// To how many of them it applies. By default to all.
        times: Integer<0, MAX_COUNT>,
        /// The probability with which it applies to one of them.
        probability: Probability,
        /// What happens.
        effect: Required<Nested<FaultEffect>>,
    }
}

input! {
    /// The faults, of which the first that matches applies.
    pub(super) struct FaultRules {
        /// The rules.
        results: Required<ListOf<Nested<FaultRule>, MAX_RULES>>,
    }
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    /// It fails with an error.
    Fails(Failure),
    /// It waits first.
    Waits(Duration),
    /// Its connection ends before anything was done.
    DropsBefore,
    /// Its connection ends when all is done.
    DropsAfter,
    /// Its connection ends after so many bytes of the body.
    Truncates(usize),
    /// Its body never arrives.
    Stalls,
    /// The mail is refused with this reply.
    Refuses(i64),
}

/// An error that a fault sends.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) status: u16,
    code: Option<String>,
    detail: Option<String>,
    pub(super) retry_after: Option<u32>,
}

impl Failure {
    /// Returns the error of the service with this status, or one like it.
    pub(super) fn error(&self) -> Error {
        let wait = self.retry_after.unwrap_or(1);
        match self.status {
            401 => Error::not_authenticated(),
            403 => Error::denied("You do not have permission to perform this action."),
            404 => Error::not_found(),
            408 => Error::body_timeout(),
            429 => Error::throttled(1, wait.into()),
            500 => Error::internal("a fault that a test asked for"),
            501.. => Error::overloaded(wait, "a fault that a test asked for"),
            _ => Error::invalid("invalid_input", "A fault that a test asked for."),
        }
    }

    /// Returns the body of the error.
    pub(super) fn body(&self) -> Value {
        let mut body = json!(self.error());
        for (name, given) in [("code", &self.code), ("detail", &self.detail)] {
            if let (Some(given), Some(body)) = (given, body.as_object_mut()) {
                body.insert(name.to_owned(), given.as_str().into());
            }
        }
        body
    }
}

impl Effect {
    fn of(sent: &FaultEffect) -> Result<Self> {
        let FaultEffect { status, delay_ms, drop, truncate, stall, smtp, .. } = sent;
        let number = |given: i64| u64::try_from(given).unwrap_or_default();
        let failure = |status: i64| Failure {
            status: u16::try_from(status).unwrap_or(500),
            code: sent.code.clone(),
            detail: sent.detail.clone(),
            retry_after: sent.retry_after.and_then(|wait| u32::try_from(wait).ok()),
        };
        let mut effects = [
            status.map(|status| Self::Fails(failure(status))),
            delay_ms.map(|millis| Self::Waits(Duration::from_millis(number(millis)))),
            drop.map(|when| if when == "before" { Self::DropsBefore } else { Self::DropsAfter }),
            truncate.map(|bytes| Self::Truncates(usize::try_from(bytes).unwrap_or_default())),
            stall.filter(|stalls| *stalls).map(|_| Self::Stalls),
            smtp.map(Self::Refuses),
        ]
        .into_iter()
        .flatten();
        if let (Some(effect), None) = (effects.next(), effects.next()) {
            return Ok(effect);
        }
        let detail = "Send exactly one of status, delay_ms, drop, truncate, stall and smtp.";
        Err(Error::field("effect", "invalid_input", detail))
    }
}

/// A request, as far as faults look at it.
pub(super) struct Asked<'r> {
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    pub(super) operation: Option<&'static str>,
    /// The address of the user, and the name of the key.
    pub(super) caller: Option<[&'r str; 2]>,
}

/// A rule, and how often it was used.
struct Fault {
    /// The rule as it was sent.
    sent: JsonObject,
    rule: FaultRule,
    effect: Effect,
    seen: i64,
    applied: i64,
}

impl Fault {
    fn concerns(&self, asked: &Asked<'_>) -> bool {
        let Some(wanted) = &self.rule.r#match else { return !self.is_for_mail() };
        let method = wanted.method.as_deref();
        let path = wanted.path.as_deref();
        let operation = wanted.operation.as_deref();
        let caller = wanted.caller.as_deref();
        !self.is_for_mail()
            && method.is_none_or(|method| method.eq_ignore_ascii_case(asked.method))
            && path.is_none_or(|path| matches_pattern(path, asked.path, b'/'))
            && operation.is_none_or(|operation| asked.operation == Some(operation))
            && caller.is_none_or(|caller| {
                asked.caller.is_some_and(|[email, label]| {
                    email.eq_ignore_ascii_case(caller) || label == caller
                })
            })
    }

    fn concerns_mail(&self, to: &str) -> bool {
        let wanted = self.rule.r#match.as_ref().and_then(|wanted| wanted.mail.as_deref());
        let like =
            |pattern: &str| matches_pattern(&pattern.to_lowercase(), &to.to_lowercase(), b'@');
        self.is_for_mail() && wanted.is_none_or(like)
    }

    fn is_for_mail(&self) -> bool {
        matches!(self.effect, Effect::Refuses(_))
    }

    /// Counts what the rule concerns. Returns whether it applies.
    fn applies(&mut self, rng: &mut SeededRng) -> bool {
        self.seen += 1;
        let FaultRule { after, times, probability, .. } = &self.rule;
        let is_turn =
            self.seen > after.unwrap_or(0) && times.is_none_or(|times| self.applied < times);
        let applies = is_turn && probability.is_none_or(|probability| draw(rng) < probability);
        self.applied += i64::from(applies);
        applies
    }
}

/// Returns a number from 0 to 1, without 1.
fn draw(rng: &mut SeededRng) -> f64 {
    let [a, b, c, d, ..] = rng.bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
}

/// The faults of a test run.
pub(super) struct Faults(Mutex<(Vec<Fault>, SeededRng)>);

impl Faults {
    pub(super) fn new() -> Self {
        Self(Mutex::new((Vec::new(), Seed::from([0; 32]).rng())))
    }

    fn state(&self) -> MutexGuard<'_, (Vec<Fault>, SeededRng)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces all faults. Their probabilities are drawn from `seed`.
    ///
    /// # Errors
    /// 400 for an effect that is none, more than one, or none for what it matches.
    pub(super) fn replace(&self, sent: &JsonObject, rules: FaultRules, seed: &Seed) -> Result<()> {
        let texts =
            sent.get("results").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut faults = Vec::with_capacity(rules.results.len());
        for (number, (rule, sent)) in rules.results.into_iter().zip(texts).enumerate() {
            let at = |error: Error| error.with_attr_prefix(&format!("results__{number}"));
            let effect = Effect::of(&rule.effect).map_err(at)?;
            let names_mail = rule.r#match.as_ref().is_some_and(|wanted| wanted.mail.is_some());
            if names_mail && !matches!(effect, Effect::Refuses(_)) {
                let detail = "A fault of mails has the effect smtp.";
                return Err(at(Error::field("effect", "invalid_input", detail)));
            }
            let sent = sent.as_object().cloned().unwrap_or_default();
            faults.push(Fault { sent, rule, effect, seen: 0, applied: 0 });
        }
        *self.state() = (faults, seed.rng());
        Ok(())
    }

    /// Ends all faults.
    pub(super) fn clear(&self) {
        self.state().0.clear();
    }

    /// Returns the faults as they were sent, with how often each was used.
    pub(super) fn shown(&self) -> Value {
        let (faults, _) = &*self.state();
        let results = (1_u64..).zip(faults).map(|(id, fault)| {
            let mut shown = fault.sent.clone();
            shown.insert("id".to_owned(), id.into());
            shown.insert("seen".to_owned(), fault.seen.into());
            shown.insert("applied".to_owned(), fault.applied.into());
            shown
        });
        results.map(Value::Object).collect()
    }

    /// Returns what happens to a request, and the id of the fault.
    pub(super) fn of_request(&self, asked: &Asked<'_>) -> Option<(u64, Effect)> {
        self.first(|fault| fault.concerns(asked))
    }

    /// Returns the error with which a mail is refused, if it is.
    pub(super) fn of_mail(&self, to: &str) -> Option<SendError> {
        let (_, effect) = self.first(|fault| fault.concerns_mail(to))?;
        let text = match effect {
            Effect::Refuses(550) => "550 5.1.1 The mailbox does not exist",
            _ => "451 4.3.0 Try again later",
        };
        Some(SendError::not_delivered(text, text))
    }

    fn first(&self, concerns: impl Fn(&Fault) -> bool) -> Option<(u64, Effect)> {
        let (faults, rng) = &mut *self.state();
        let mut concerned = (1..).zip(faults).filter(|(_, fault)| concerns(fault));
        concerned.find_map(|(id, fault)| fault.applies(rng).then(|| (id, fault.effect.clone())))
    }
}

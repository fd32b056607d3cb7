//! Values without their type. A queue, a channel or a thread that passes them on is compiled once, not for each type.

use std::any::Any;

use super::error::{Error, Result};

/// A value whose type only its sender and its receiver know.
pub type AnyValue = Box<dyn Any + Send>;

/// Returns `value` without its type.
pub fn erase<T: Send + 'static>(value: T) -> AnyValue {
    Box::new(value)
}

/// Returns a value that [`erase`] took.
///
/// # Errors
/// 500 if the value has another type, which is a bug.
pub fn downcast<T: 'static>(value: AnyValue) -> Result<T> {
    let value = value.downcast::<T>();
    value.map(|value| *value).map_err(|_| Error::internal("a result has another type"))
}

/// Waits for a value that [`erase`] took.
///
/// # Errors
/// The error of `value`, and those of [`downcast`].
pub async fn typed<T: 'static>(value: impl Future<Output = Result<AnyValue>>) -> Result<T> {
    downcast(value.await?)
}

//! An Apache RocketMQ client.

mod attempt;
mod error;
mod message;
mod protocol;
mod queue;
mod random;
mod retry;
mod routes;

pub use attempt::Attempt;
pub use error::{SendError, SendErrorKind};
pub use message::{Message, MessageError};
pub use protocol::send::SendStatus;
pub use queue::MessageQueue;
pub use retry::{AttemptPlan, Duplicates};
pub use routes::{NameServerError, NameServerFailure, RouteError, RouteErrorKind};

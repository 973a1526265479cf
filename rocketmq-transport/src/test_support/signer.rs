//! A signer that takes as long as the script says.

use std::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::sync::watch;

use crate::{Request, Signature, Signer, Signing};

/// A signer that adds one field, `Signature`, at once or when it is told to.
#[derive(Debug)]
pub struct ScriptedSigner {
    signing: watch::Sender<Readiness>,
    /// It stands for itself, hence `Relaxed`.
    asked: AtomicUsize,
}

/// How a [`ScriptedSigner`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// With a signature, without a wait.
    Ready,
    /// Not at all, until something else is set.
    Hold,
    /// With a failure.
    Fail,
}

impl ScriptedSigner {
    /// A signer that answers as `readiness` says.
    #[must_use]
    pub fn new(readiness: Readiness) -> Self {
        Self { signing: watch::Sender::new(readiness), asked: AtomicUsize::new(0) }
    }

    /// Says how it answers from now on, also those who wait.
    pub fn set(&self, readiness: Readiness) {
        self.signing.send_replace(readiness);
    }

    /// How many signatures it was asked for.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }

    fn answer(readiness: Readiness) -> Result<Signature, crate::SignError> {
        match readiness {
            Readiness::Ready | Readiness::Hold => Ok(vec![("Signature".into(), SIGNATURE.to_owned())]),
            Readiness::Fail => Err(std::sync::Arc::new(NoKey)),
        }
    }
}

impl Signer for ScriptedSigner {
    fn max_header_bytes(&self) -> usize {
        "Signature".len() + SIGNATURE.len()
    }

    fn sign<'a>(&'a self, _: &'a Request<'a>) -> Signing<'a> {
        self.asked.fetch_add(1, Relaxed);
        let readiness = *self.signing.borrow();
        if readiness != Readiness::Hold {
            return Signing::Ready(Self::answer(readiness));
        }
        Signing::Pending(Box::pin(async move {
            let mut signing = self.signing.subscribe();
            let decided = signing.wait_for(|readiness| *readiness != Readiness::Hold).await;
            Self::answer(*decided.expect("the signer keeps its script"))
        }))
    }
}

/// Why a [`ScriptedSigner`] failed: it was told to.
#[derive(Debug)]
struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signer was told to fail")
    }
}

impl std::error::Error for NoKey {}

const SIGNATURE: &str = "scripted";

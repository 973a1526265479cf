//! A sink for log lines.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::DefaultGuard,
};

/// Keeps the lines that are logged on this thread while it lives, spans left out.
#[derive(Debug)]
pub struct LogSink {
    lines: Arc<Mutex<Vec<LogLine>>>,
    _guard: DefaultGuard,
}

/// One log line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// Its target.
    pub target: String,
    /// Its message.
    pub message: String,
    /// Its fields, each in the form that it prints in.
    pub fields: BTreeMap<String, String>,
}

impl LogSink {
    /// Starts to keep lines.
    #[must_use]
    pub fn install() -> Self {
        // With a single dispatcher in the process, tracing asks the default of whichever thread meets a log line
        // first whether anybody cares, and remembers the answer for all threads. With two it asks them.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Deaf));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let guard = tracing::subscriber::set_default(Collector { lines: Arc::clone(&lines) });
        Self { lines, _guard: guard }
    }

    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines so far with this message.
    #[must_use]
    pub fn with_message(&self, message: &str) -> Vec<LogLine> {
        self.lines().into_iter().filter(|line| line.message == message).collect()
    }
}

/// A subscriber that wants nothing.
struct Deaf;

impl Subscriber for Deaf {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Collector {
    lines: Arc<Mutex<Vec<LogLine>>>,
}

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            message: String::new(),
            fields: BTreeMap::new(),
        };
        event.record(&mut line);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for LogLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = value,
            name => drop(self.fields.insert(name.to_owned(), value)),
        }
    }
}

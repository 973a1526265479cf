//! The command line: what can be asked for, and the checks that need nothing but the words themselves.

use std::{path::PathBuf, str::FromStr};

use clap::{ArgAction, Args, Parser, ValueEnum};
use rocketmq_transport::Peer;

use crate::fault::FaultSpec;

/// Sends messages to Apache RocketMQ, and runs a broker in memory.
#[derive(Debug, Parser)]
#[command(name = "rmq", version, propagate_version = true)]
pub(crate) struct Cli {
    /// Logs to standard error: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Runs a name server and a broker in memory until Ctrl-C
    ///
    /// The first line on standard output is the name server's address. Nothing that is sent to it outlives it.
    Broker(BrokerArgs),
    /// Sends messages and reports how each one ended
    ///
    /// Exit code: 0 all stored, 1 some not stored or not sent, 2 the command line cannot be followed. Ctrl-C
    /// starts no further sends, waits for those in flight within their budgets, and still prints the summary; a
    /// second Ctrl-C ends at once with code 130. On SIGUSR1 it lists on standard error what is in flight.
    Produce(Box<ProduceArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct BrokerArgs {
    /// Port of the name server on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,

    /// Creates a topic, with 4 queues unless told otherwise; may be repeated. Other topics are created by the
    /// first message sent to them
    #[arg(long = "topic", value_name = "NAME[:QUEUES]")]
    pub(crate) topics: Vec<TopicSpec>,

    /// How many brokers there are, broker-0, broker-1 and so on, all of one cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) brokers: usize,

    /// Makes servers misbehave: [at=SERVER,][code=N,][skip=N,][times=N,]FAULT; may be repeated
    ///
    /// For example `code=310,times=2,answer=2:busy`, `at=broker-1,code=310,skip=5,never`, `cut=out:100:rst`.
    ///
    /// SERVER is namesrv or broker-0, broker-1 and so on; without it a fault is for each broker, and each counts for
    /// itself. A fault strikes those requests (of operation `code`, or any) or connections that come after the first
    /// `skip`, so many `times`; without `times` every one. Of the faults of a request the first that is due strikes.
    ///
    /// Of requests:
    ///   delay=MS               carried out at once, answered so much later
    ///   never                  carried out, never answered
    ///   ignore                 neither carried out nor answered
    ///   twice                  answered twice
    ///   opaque=unknown         answered under a number that no request has
    ///   opaque=foreign         answered under the number of a request of another connection
    ///   answer=CODE[:REMARK]   not carried out, answered with this; the remark runs to the end
    ///   garbage[=BYTES]        carried out, answered with bytes that are no frame [64]
    ///
    /// Of connections:
    ///   connect=slow:MS        what the client sends is not looked at for so long
    ///   connect=refuse         nothing listens; without skip and times
    ///   stop-reading[=BYTES]   so many bytes are read, and no more [0]
    ///   cut=in:BYTES:HOW       ended after so many bytes of the client
    ///   cut=out:BYTES:HOW      ended after so many bytes to the client
    /// HOW is fin, rst, or half: the server ends its own direction and reads on.
    #[arg(long = "fault", value_name = "SPEC", verbatim_doc_comment)]
    pub(crate) faults: Vec<FaultSpec>,
}

#[derive(Debug, Args)]
pub(crate) struct ProduceArgs {
    /// Name servers: host:port, several separated by commas or semicolons; may be repeated
    #[arg(long, value_name = "ADDRESSES", required_unless_present = "embedded", conflicts_with = "embedded")]
    pub(crate) namesrv: Vec<Addresses>,

    /// Starts a broker in this process and sends to it
    #[arg(long)]
    pub(crate) embedded: bool,

    /// The topic; `demo` if it is left out with --embedded
    #[arg(long, value_name = "NAME", required_unless_present = "embedded")]
    pub(crate) topic: Option<String>,

    /// How many messages to send [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "file")]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) content: ContentArgs,

    /// Key for look-ups, the same for every message; may be repeated
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) keys: Vec<String>,

    /// Tag for filters, the same for every message
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,

    #[command(flatten)]
    pub(crate) sending: SendingArgs,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// The form of the report: text has failures on standard error and a summary on standard output, json has
    /// one object a line on standard output
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ContentArgs {
    /// Sends bodies of this many bytes, at most 4 MiB [default: 1024]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=MAX_BODY_BYTES as i64))]
    pub(crate) size: Option<u32>,

    /// Sends this text
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) body: Option<String>,

    /// Sends each line of a file as one message; `-` is standard input
    ///
    /// A line ends at its line feed, which is not sent; every other byte is, a carriage return too. Bytes need
    /// not be UTF-8. An empty line, and one longer than 4 MiB, counts as a message that failed.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SendingArgs {
    /// How many sends may be in flight at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) concurrency: u16,

    /// The whole budget of one send in milliseconds: route, all attempts and the pauses between them
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,

    /// How many brokers one send may try
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: u32,

    /// Whether a message may be sent again that the broker may already have
    #[arg(long, value_enum, default_value_t = DuplicatesArg::Allow)]
    pub(crate) duplicates: DuplicatesArg,

    /// Sends without asking for an answer: a message counts as `written`, not `stored`, once a socket has accepted
    /// its last byte, and is never sent again after its first
    #[arg(long, conflicts_with = "duplicates")]
    pub(crate) oneway: bool,

    /// How request headers are written
    #[arg(long, value_enum, default_value_t = HeaderArg::Json)]
    pub(crate) header: HeaderArg,
}

#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    /// Access key; the secret key comes from --secret-key-file, or else from the environment variable
    /// RMQ_SECRET_KEY
    #[arg(long, value_name = "KEY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) access_key: Option<String>,

    /// A file that holds the secret key; one line feed at its end is left out
    #[arg(long, value_name = "PATH", requires = "access_key")]
    pub(crate) secret_key_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DuplicatesArg {
    Allow,
    Forbid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderArg {
    Json,
    Binary,
}

/// The addresses of one `--namesrv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses(pub(crate) Vec<Peer>);

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |address: &str| address.trim().parse().map_err(|error| format!("{error}"));
        text.split([',', ';']).map(parse).collect::<Result<_, _>>().map(Self)
    }
}

/// `NAME[:QUEUES]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicSpec {
    pub(crate) name: String,
    pub(crate) queues: u32,
}

impl FromStr for TopicSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, queues)) = text.split_once(':') else {
            return Ok(Self { name: text.to_owned(), queues: DEFAULT_QUEUES });
        };
        let queues =
            queues.parse().map_err(|_| format!("the number of queues {queues:?} is not a number"))?;
        Ok(Self { name: name.to_owned(), queues })
    }
}

/// The brokers' default limit of a body.
pub(crate) const MAX_BODY_BYTES: usize = 4 << 20;
/// As many queues as clients ask for when they create a topic by sending to it.
const DEFAULT_QUEUES: u32 = 4;

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, error::ErrorKind};

    use super::*;

    fn error(words: &str) -> (ErrorKind, String) {
        let error = Cli::try_parse_from(words.split_whitespace()).expect_err(words);
        (error.kind(), error.to_string())
    }

    fn produce(words: &str) -> ProduceArgs {
        match Cli::try_parse_from(words.split_whitespace()).expect(words).command {
            Subcommand::Produce(args) => *args,
            Subcommand::Broker(_) => panic!("{words}"),
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn name_servers_come_separated_or_repeated() {
        let args = produce("rmq produce --topic t --namesrv a:1,b:2;[::1]:3 --namesrv d:4");
        let all: Vec<_> = args.namesrv.iter().flat_map(|addresses| &addresses.0).map(Peer::as_str).collect();
        assert_eq!(all, ["a:1", "b:2", "[::1]:3", "d:4"]);
    }

    #[test]
    fn a_topic_of_the_broker_may_name_its_queues() {
        assert_eq!("t:8".parse(), Ok(TopicSpec { name: "t".into(), queues: 8 }));
        assert_eq!("t".parse(), Ok(TopicSpec { name: "t".into(), queues: 4 }));
        assert!("t:x".parse::<TopicSpec>().unwrap_err().contains("\"x\""));
    }

    #[test]
    fn each_bad_argument_is_refused_with_the_word_that_is_wrong() {
        for (words, kind, shown) in [
            ("rmq produce", ErrorKind::MissingRequiredArgument, "--namesrv"),
            ("rmq produce --namesrv a:1", ErrorKind::MissingRequiredArgument, "--topic"),
            ("rmq produce --topic t --namesrv a", ErrorKind::ValueValidation, "the port is missing"),
            ("rmq produce --topic t --namesrv a:1,,b:2", ErrorKind::ValueValidation, "the port is missing"),
            ("rmq produce --embedded --namesrv a:1", ErrorKind::ArgumentConflict, "--embedded"),
            ("rmq produce --embedded --count 0", ErrorKind::ValueValidation, "--count"),
            ("rmq produce --embedded --count -1", ErrorKind::UnknownArgument, "-1"),
            ("rmq produce --embedded --size 0", ErrorKind::ValueValidation, "--size"),
            ("rmq produce --embedded --size 4194305", ErrorKind::ValueValidation, "--size"),
            ("rmq produce --embedded --size 1 --body x", ErrorKind::ArgumentConflict, "--body"),
            ("rmq produce --embedded --file x --count 2", ErrorKind::ArgumentConflict, "--count"),
            ("rmq produce --embedded --timeout 0", ErrorKind::ValueValidation, "--timeout"),
            ("rmq produce --embedded --concurrency 0", ErrorKind::ValueValidation, "--concurrency"),
            ("rmq produce --embedded --attempts 0", ErrorKind::ValueValidation, "--attempts"),
            ("rmq produce --embedded --duplicates maybe", ErrorKind::InvalidValue, "allow, forbid"),
            ("rmq produce --embedded --header xml", ErrorKind::InvalidValue, "json, binary"),
            (
                "rmq produce --embedded --secret-key-file x",
                ErrorKind::MissingRequiredArgument,
                "--access-key",
            ),
            ("rmq produce --embedded --secret-key x", ErrorKind::UnknownArgument, "--secret-key"),
            ("rmq broker --port 65536", ErrorKind::ValueValidation, "--port"),
            ("rmq produce --embedded --oneway --duplicates allow", ErrorKind::ArgumentConflict, "--oneway"),
            ("rmq broker --fault explode", ErrorKind::ValueValidation, "\"explode\" is no fault"),
            ("rmq broker --fault cut=up:1:fin", ErrorKind::ValueValidation, "\"up\", expected in or out"),
            ("rmq broker --topic t:many", ErrorKind::ValueValidation, "\"many\""),
        ] {
            let (actual, text) = error(words);
            assert_eq!(actual, kind, "{words}: {text}");
            assert!(text.contains(shown), "{words}: {text}");
        }
        assert_eq!(
            Cli::try_parse_from(["rmq", "produce", "--embedded", "--body", ""]).unwrap_err().kind(),
            ErrorKind::InvalidValue
        );
    }
}

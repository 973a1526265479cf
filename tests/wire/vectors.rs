//! The vector files of `tests/golden`.

use rocketmq_transport::HeaderEncoding;

/// A release of Apache RocketMQ whose classes wrote vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    V4_9_7,
    V5_5_0,
}

impl Release {
    /// Its `MQVersion`.
    pub(crate) fn version(self) -> i16 {
        match self {
            Self::V4_9_7 => 407,
            Self::V5_5_0 => 513,
        }
    }
}

/// Which of Java's two encoders wrote a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The one that makes a frame in one piece.
    Encode,
    /// The one that writes to a socket.
    Wire,
}

/// One frame, and how it was made.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub(crate) release: Release,
    pub(crate) name: &'static str,
    pub(crate) encoding: HeaderEncoding,
    pub(crate) path: Path,
    pub(crate) frame: Vec<u8>,
}

impl Vector {
    /// What a failed assertion says of it.
    pub(crate) fn label(&self) -> String {
        format!("{} of {:?} in {:?} by {:?}", self.name, self.release, self.encoding, self.path)
    }
}

/// All vectors of all releases.
pub(crate) fn all() -> Vec<Vector> {
    let files = [
        (Release::V4_9_7, include_str!("../golden/vectors-4.9.7.tsv")),
        (Release::V5_5_0, include_str!("../golden/vectors-5.5.0.tsv")),
    ];
    files.into_iter().flat_map(|(release, rows)| rows.lines().map(move |row| parse(release, row))).collect()
}

fn parse(release: Release, row: &'static str) -> Vector {
    let columns = row.split('\t').collect::<Vec<_>>();
    let &[name, encoding, path, frame] = columns.as_slice() else {
        panic!("not a row of four columns: {row}")
    };
    Vector {
        release,
        name,
        encoding: match encoding {
            "JSON" => HeaderEncoding::Json,
            "ROCKETMQ" => HeaderEncoding::Binary,
            _ => panic!("unknown encoding {encoding}"),
        },
        path: match path {
            "encode" => Path::Encode,
            "wire" => Path::Wire,
            _ => panic!("unknown path {path}"),
        },
        frame: from_hex(frame),
    }
}

fn from_hex(hex: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("hex is ASCII");
        u8::from_str_radix(text, 16).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    hex.as_bytes().chunks(2).map(byte).collect()
}

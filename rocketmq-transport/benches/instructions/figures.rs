//! The figures as they are checked in, and the comparison with them.

use std::{fmt, str::FromStr};

/// What was counted, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    /// The processor architecture.
    pub(crate) machine: String,
    /// The C library and its version.
    pub(crate) libc: String,
    pub(crate) operations: Vec<Figure>,
}

/// The instructions that one operation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) operation: String,
    /// Those of the program itself, with all that is linked into it.
    pub(crate) program: u64,
    /// Those and the C library's: allocating, copying.
    pub(crate) whole: u64,
}

/// What differs from the figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Difference {
    #[error("{operation}: {part} rose from {expected} to {counted}")]
    Rose { operation: String, part: Part, expected: u64, counted: u64 },
    /// A figure that is too high would let the next rise pass.
    #[error("{operation}: {part} fell from {expected} to {counted}")]
    Fell { operation: String, part: Part, expected: u64, counted: u64 },
    #[error("{operation}: has no figure yet")]
    Unknown { operation: String },
    #[error("{operation}: has a figure and is not counted any more")]
    Gone { operation: String },
}

/// Which of an operation's two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Program,
    Whole,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "the program",
            Self::Whole => "program and libc",
        })
    }
}

/// What differs by more than [`TOLERANCE`]. With another C library only the program itself is compared.
pub(crate) fn compare(expected: &Figures, counted: &Figures) -> Vec<Difference> {
    let mut differences = Vec::new();
    for Figure { operation, program, whole } in &counted.operations {
        let Some(figure) = expected.operations.iter().find(|figure| figure.operation == *operation) else {
            differences.push(Difference::Unknown { operation: operation.clone() });
            continue;
        };
        differences.extend(compare_part(operation, Part::Program, figure.program, *program));
        if expected.libc == counted.libc {
            differences.extend(compare_part(operation, Part::Whole, figure.whole, *whole));
        }
    }
    for Figure { operation, .. } in &expected.operations {
        if counted.operations.iter().all(|figure| figure.operation != *operation) {
            differences.push(Difference::Gone { operation: operation.clone() });
        }
    }
    differences
}

fn compare_part(operation: &str, part: Part, expected: u64, counted: u64) -> Option<Difference> {
    let operation = operation.to_owned();
    if counted * 100 > expected * (100 + TOLERANCE) {
        Some(Difference::Rose { operation, part, expected, counted })
    } else if counted * 100 < expected * (100 - TOLERANCE) {
        Some(Difference::Fell { operation, part, expected, counted })
    } else {
        None
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}machine {}\nlibc {}\n", self.machine, self.libc)?;
        for Figure { operation, program, whole } in &self.operations {
            writeln!(f, "{operation:<24} {program:>8} {whole:>8}")?;
        }
        Ok(())
    }
}

impl FromStr for Figures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut machine, mut libc, mut operations) = (None, None, Vec::new());
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix("machine ") {
                machine = Some(name.to_owned());
            } else if let Some(name) = line.strip_prefix("libc ") {
                libc = Some(name.to_owned());
            } else {
                operations.push(Figure::read(line).ok_or_else(|| format!("not a figure: {line}"))?);
            }
        }
        match (machine, libc) {
            (Some(machine), Some(libc)) => Ok(Self { machine, libc, operations }),
            _ => Err("the figures do not say of which machine and libc they are".into()),
        }
    }
}

impl Figure {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let operation = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some(Self { operation, program: number()?, whole: number()? })
    }
}

/// How far a count may be from its figure, in per cent.
pub(crate) const TOLERANCE: u64 = 3;

const HEAD: &str = "\
# Instructions per operation: of the program with all that is linked into it, and of program and C library together.
# Written by `UPDATE_FIGURES=1 tests/instructions`; `tests/instructions` fails where a count is more than 3 % higher, and
# also where it is more than 3 % lower, since the figure would then let a rise pass.
#
# They depend on the compiler, which is pinned, on the bench profile, on Cargo.lock, and on the architecture. What the C
# library takes to allocate and to copy depends on its version, so the second figure is compared only where that is the
# same; its copies are chosen by the processor that valgrind shows it, which is the same model wherever the real one has
# AVX2. They depend neither on the load nor on the speed of the machine, nor on where the sources are.

";

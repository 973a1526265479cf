//! The gate of the instruction counts: what it lets pass and what it does not.

#[path = "../benches/instructions/figures.rs"]
mod figures;

use figures::{Difference, Figure, Figures, Part, TOLERANCE, compare};

#[test]
fn a_rise_above_the_tolerance_fails_and_one_within_it_does_not() {
    let expected = figures(&[("call", 10_000, 20_000)]);
    let limit = 10_000 + 100 * TOLERANCE;
    assert_eq!(compare(&expected, &figures(&[("call", limit, 20_000)])), []);
    let rose = Difference::Rose {
        operation: "call".into(),
        part: Part::Program,
        expected: 10_000,
        counted: limit + 1,
    };
    assert_eq!(compare(&expected, &figures(&[("call", limit + 1, 20_000)])), [rose]);
}

#[test]
fn a_rise_in_the_c_library_alone_fails() {
    let expected = figures(&[("call", 10_000, 20_000)]);
    let rose =
        Difference::Rose { operation: "call".into(), part: Part::Whole, expected: 20_000, counted: 21_000 };
    assert_eq!(compare(&expected, &figures(&[("call", 10_000, 21_000)])), [rose]);
}

#[test]
fn another_c_library_is_not_held_to_the_figures_of_this_one() {
    let expected = figures(&[("call", 10_000, 20_000)]);
    let elsewhere = Figures { libc: "glibc 9.99".into(), ..figures(&[("call", 10_000, 30_000)]) };
    assert_eq!(compare(&expected, &elsewhere), []);
    let elsewhere = Figures { libc: "glibc 9.99".into(), ..figures(&[("call", 11_000, 20_000)]) };
    assert!(matches!(compare(&expected, &elsewhere)[..], [Difference::Rose { part: Part::Program, .. }]));
}

#[test]
fn a_fall_fails_too_so_that_the_figure_follows_it() {
    let expected = figures(&[("call", 10_000, 20_000)]);
    let limit = 10_000 - 100 * TOLERANCE;
    assert_eq!(compare(&expected, &figures(&[("call", limit, 20_000)])), []);
    let fell = Difference::Fell {
        operation: "call".into(),
        part: Part::Program,
        expected: 10_000,
        counted: limit - 1,
    };
    assert_eq!(compare(&expected, &figures(&[("call", limit - 1, 20_000)])), [fell]);
}

#[test]
fn an_operation_without_a_figure_fails_and_so_does_a_figure_without_an_operation() {
    let (call, encode) = (figures(&[("call", 10, 20)]), figures(&[("encode", 10, 20)]));
    let differences =
        [Difference::Unknown { operation: "encode".into() }, Difference::Gone { operation: "call".into() }];
    assert_eq!(compare(&call, &encode), differences);
}

#[test]
fn what_is_written_is_read_again() {
    let written = figures(&[("call", 10_000, 20_000), ("encode", 1, 2)]);
    assert_eq!(written.to_string().parse(), Ok(written));
}

#[test]
fn a_line_that_is_no_figure_is_an_error() {
    assert!("machine x86_64\nlibc glibc 2.36\ncall many 20\n".parse::<Figures>().is_err());
    assert!("call 10 20\n".parse::<Figures>().is_err());
}

fn figures(operations: &[(&str, u64, u64)]) -> Figures {
    let figure = |&(operation, program, whole): &(&str, u64, u64)| Figure {
        operation: operation.into(),
        program,
        whole,
    };
    let operations = operations.iter().map(figure).collect();
    Figures { machine: "x86_64".into(), libc: "glibc 2.36".into(), operations }
}

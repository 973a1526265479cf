//! `docs/errors.md`, made of the table, and the proof that it is complete.

use std::{
    collections::HashSet,
    fmt::{Result, Write},
    path::Path,
};

use rocketmq_client::{ResolveErrorKind, RouteErrorKind, SendErrorKind};
use rocketmq_transport::{Stage, TransportErrorKind};

use crate::{
    answers::{ANSWERS, AnswerRow},
    codes::{CODES, CodeText},
    examples::{self, EXAMPLES, Example},
    row::{Expect, Fault, Remembered, Row},
    table::rows,
};

#[tokio::test(start_paused = true)]
async fn the_page_of_errors_is_what_the_table_says() {
    let page = page(&rows()).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let first = page.lines().zip(found.lines()).find(|(made, found)| made != found);
    assert!(
        page == found,
        "docs/errors.md differs from the table, first in {first:?}; after a look at why, write it anew with \
         `UPDATE_DOCS=1 cargo test -p rocketmq-tests --test matrix`"
    );
}

#[test]
fn every_code_has_a_text_and_a_row() {
    let (transport, send, route) =
        (TransportErrorKind::CODE_IDS, SendErrorKind::CODE_IDS, RouteErrorKind::CODE_IDS);
    let of_failures = [&transport[..], &send, &route].concat();
    let mut known = [&of_failures[..], &ResolveErrorKind::CODE_IDS].concat();
    known.sort_unstable();
    let mut explained: Vec<_> = CODES.iter().map(|text| text.code).collect();
    explained.sort_unstable();
    assert_eq!(explained, known);
    let rows = rows();
    let happens: HashSet<_> = rows.iter().filter_map(Row::failure).map(|failure| failure.code).collect();
    assert_eq!(happens, of_failures.into_iter().collect());
}

#[test]
fn every_fault_is_tried_in_every_stage_or_cannot_happen_there() {
    let rows = rows();
    for stage in Stage::ALL {
        for fault in Fault::EVERYWHERE {
            assert!(
                rows.iter().any(|row| (row.stage, row.fault) == (stage, fault)),
                "{stage} × {} has no row",
                fault.as_str()
            );
        }
        assert!(EXAMPLES.iter().any(|example| example.stage == stage), "{stage} has no line");
    }
}

async fn page(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    for Example { stage, fault, .. } in &EXAMPLES {
        // Of two rows the simpler one comes last.
        let row = rows.iter().rfind(|row| (row.stage, row.fault) == (*stage, *fault));
        lines.push(examples::line(row.expect("an example is a row of the table")).await);
    }
    let mut page = String::from(HEAD);
    write(&mut page, rows, &lines).expect("a string takes whatever is written to it");
    page
}

fn write(page: &mut String, rows: &[Row], lines: &[String]) -> Result {
    page.push_str("\n## One line for each stage\n");
    let mut stage = None;
    for (example, line) in EXAMPLES.iter().zip(lines) {
        if stage.replace(example.stage) != Some(example.stage) {
            write!(page, "\n### {}\n", example.stage)?;
        }
        write!(page, "\n```text\n{line}\n```\n\n{}\n", example.says)?;
    }
    page.push_str("\n## Codes\n");
    for text in &CODES {
        write_code(page, text, rows)?;
    }
    page.push_str(ANSWERS_HEAD);
    for AnswerRow { answer, means, certainty, next, .. } in &ANSWERS {
        writeln!(page, "| {answer} | {means} | `{certainty}` | {} |", next.text())?;
    }
    page.push_str(MATRIX_HEAD);
    rows.iter().try_for_each(|row| write_row(page, row))
}

fn write_code(page: &mut String, text: &CodeText, rows: &[Row]) -> Result {
    let CodeText { code, means, developer, operator } = text;
    let mut ends: Vec<String> = Vec::new();
    for (row, failure) in rows.iter().filter_map(|row| Some((row, row.failure()?))) {
        let end = format!("{} (`{}`)", row.stage, failure.certainty);
        if failure.code == *code && !ends.contains(&end) {
            ends.push(end);
        }
    }
    write!(page, "\n### {code}\n\n{means}\n\n")?;
    if !ends.is_empty() {
        writeln!(page, "- **Comes in** {}.", ends.join(", "))?;
    }
    writeln!(page, "- **In the program:** {developer}")?;
    writeln!(page, "- **On call:** {operator}")
}

fn write_row(page: &mut String, row: &Row) -> Result {
    write!(page, "| {} | {} | ", row.stage, row.fault.as_str())?;
    match &row.expect {
        Expect::Fails(failure) => {
            let fields = failure.fields.iter().map(|(name, value)| format!(", `{name}={value}`"));
            writeln!(
                page,
                "{} | {} | `{}` | `elapsed_ms={}`{} | {} | {} |",
                row.how,
                failure.code,
                failure.certainty,
                failure.ms,
                fields.collect::<String>(),
                failure.next.text(),
                match failure.remembered {
                    Remembered::Yes => TOMBSTONE,
                    Remembered::No => "zero",
                },
            )
        }
        Expect::Abandoned { frames } => writeln!(
            page,
            "{} | – | the peer has {} | no line: nobody is left to be told | nothing: the send was dropped | {} |",
            row.how,
            if *frames == 0 { "nothing of it" } else { "all of it" },
            if *frames == 0 { "zero" } else { TOMBSTONE },
        ),
        Expect::GoesOn(then) => writeln!(page, "{} | – | – | no line: {then} | – | zero |", row.how),
        Expect::CannotHappen(because) => writeln!(page, "cannot happen: {because} | | | | | |"),
    }
}

const HEAD: &str = include_str!("head.md");
const TOMBSTONE: &str = "one tombstone, gone with the late answer or after `late_window`; then zero";
const ANSWERS_HEAD: &str = "\n## What a broker's answer to a send means\n
0, 10, 11 and 12 say that the message is stored; after 10 to 12 it is not yet flushed or replicated, which the receipt
shows as its status. The first row that fits counts.\n
| answer | means | certainty | the producer's next step |\n|---|---|---|---|\n";
const MATRIX_HEAD: &str = "\n## The matrix\n
Every stage, and everything that can go wrong there. Each row is carried out by a test (`tests/matrix`), on a clock that
stands still, against a scripted peer that counts what it has been sent; each column is checked. \"At the end\" is about
the gauges of `usage()`: requests, bytes, what is queued, pending and remembered.\n
| stage | what goes wrong | how | code | certainty | in the line | the producer's next step | at the end |\n\
|---|---|---|---|---|---|---|---|\n";

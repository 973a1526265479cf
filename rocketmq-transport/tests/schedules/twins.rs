//! The same schedule twice, with and without what befalls one of its requests: nobody else can tell the difference.

use crate::{
    invariants::broken,
    plan::{Answer, RequestPlan, Schedule, SigningPlan},
    run::{Outcome, run},
    seeds,
};

#[test]
fn what_befalls_one_request_changes_no_other_outcome() {
    for seed in seeds(500) {
        let mut without = Schedule::calm(seed);
        without.requests[0] = without.requests[0].plain();
        let fates = [Fate::Deadline, Fate::Dropped, Fate::Refused, Fate::Unsigned, Fate::Unanswered];
        let fate = fates[(seed % 5) as usize];
        let mut with = without.clone();
        with.requests[0] = fate.befalls(with.requests[0], seed);
        let ends = [&without, &with].map(|schedule| {
            let story = run(schedule);
            let broken = broken(schedule, &story);
            assert!(broken.is_empty(), "seed {seed} breaks {broken:#?}\n{schedule:#?}");
            let told = story.told.into_iter().map(|told| told.expect("judged above"));
            told.map(|told| (summary(&told.outcome), told.ended - story.start)).collect::<Vec<_>>()
        });
        let [without, with_it] = &ends;
        assert_ne!(with_it[0].0, "answered", "seed {seed}: {fate:?} did not befall it");
        assert_eq!(without[1..], with_it[1..], "seed {seed}, I7: {fate:?} changes a neighbour\n{with:#?}");
    }
}

/// What befalls a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Deadline,
    Dropped,
    Refused,
    Unsigned,
    Unanswered,
}

impl Fate {
    fn befalls(self, plan: RequestPlan, seed: u64) -> RequestPlan {
        let (later, early) = (Answer::After(300), seed / 5 % 40);
        match self {
            Self::Deadline => RequestPlan { budget: Some(early), answer: later, ..plan },
            Self::Dropped => RequestPlan { dropped: Some(early), answer: later, ..plan },
            Self::Refused => RequestPlan { body: 5_000_000, ..plan },
            Self::Unsigned => RequestPlan { signing: SigningPlan::FailsAfter(early), ..plan },
            Self::Unanswered => RequestPlan { budget: Some(early + 50), answer: Answer::Never, ..plan },
        }
    }
}

/// How a request ended, but for what is its generation's business.
fn summary(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered(_) => "answered".to_owned(),
        Outcome::Written(_) => "written".to_owned(),
        Outcome::Dropped => "dropped".to_owned(),
        Outcome::Failed(error) => format!("{} {} {}", error.code_id(), error.stage(), error.certainty()),
    }
}

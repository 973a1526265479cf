//! That the judge can find fault: a true story is tampered with, and each invariant is named.

use std::time::Duration;

use rocketmq_transport::{Admission, Class, RetirePolicy};

use crate::{
    invariants::broken,
    plan::{Answer, Cut, Dial, End, How, Kind, PeerPlan, RequestPlan, Schedule, Settings, SigningPlan, When},
    run::{Story, run},
    world::Dialed,
};

#[test]
fn a_true_story_breaks_nothing() {
    let schedule = schedule();
    assert_eq!(broken(&schedule, &run(&schedule)), Vec::<String>::new());
}

#[test]
fn every_invariant_is_found_to_be_broken_where_it_is() {
    let tamperings: [(&str, Tampering); 12] = [
        ("I2: request 0: it never ended", |story| story.told[0] = None),
        ("I2: request 0: 2 frames", |story| {
            let log = &mut story.connections[0];
            let (twice, later) = (log.left.clone(), log.marks.clone());
            log.marks.extend(later.iter().map(|(left, at)| (left + twice.len(), *at)));
            log.left.extend(twice);
        }),
        ("I4: request 3", |story| story.connections[0].decoded.push(3)),
        ("I5: InUse", |story| story.in_use[0].usage.peers[0].pending = 1),
        ("I7: request 1: answered", |story| {
            let started = story.start;
            story.connections[0].answered.push((1, started));
        }),
        ("I7: request 2: no reason", |story| story.connections[2].cut = None),
        ("I8: request 0", |story| story.connections[0].answered.clear()),
        ("I11: connection 1", |story| story.connections[1].let_go = Some(story.start)),
        ("I12", |story| story.dials[0].ended = Some((story.start, Dialed::Dropped))),
        ("I13: request 0", |story| delay(story, 5)),
        ("I17: request 0", |story| delay(story, 2_000)),
        ("I19: request 0", |story| delay(story, 2)),
    ];
    let schedule = schedule();
    for (name, tamper) in tamperings {
        let mut story = run(&schedule);
        tamper(&mut story);
        let broken = broken(&schedule, &story);
        assert!(broken.iter().any(|broken| broken.starts_with(name)), "{name} is not in {broken:#?}");
    }
}

#[test]
fn a_first_byte_after_the_deadline_is_found() {
    let schedule = schedule();
    let mut story = run(&schedule);
    for (_, at) in &mut story.connections[0].marks {
        *at += Duration::from_secs(3);
    }
    let broken = broken(&schedule, &story);
    assert!(broken.iter().any(|broken| broken.starts_with("I20: request 0")), "{broken:#?}");
}

/// What is done to a story.
type Tampering = fn(&mut Story);

fn delay(story: &mut Story, ms: u64) {
    story.told[0].as_mut().expect("it ended").ended += Duration::from_millis(ms);
}

/// One request that is answered, one that never is, one whose connection is lost, one that never starts, and one to a
/// peer that answers at once.
fn schedule() -> Schedule {
    let plain = RequestPlan {
        peer: 0,
        at: 0,
        kind: Kind::Call,
        class: Class::Data,
        body: 50,
        budget: Some(1_500),
        start_by: None,
        admission: Admission::Refuse,
        dropped: None,
        signing: SigningPlan::AtOnce,
        answer: Answer::After(0),
    };
    let requests = vec![
        plain,
        RequestPlan { answer: Answer::Never, budget: Some(50), ..plain },
        RequestPlan { answer: Answer::Never, peer: 1, ..plain },
        RequestPlan { budget: Some(0), ..plain },
        RequestPlan { peer: 2, ..plain },
    ];
    let cut = Cut { when: When::After(20), how: How::Fin };
    let hung_up =
        PeerPlan { cuts: vec![Some(cut)], dials: vec![Dial::ConnectsAfter(5)], ..PeerPlan::sound() };
    let settings = Settings {
        retire: RetirePolicy::OnSilence,
        limit: 100,
        max_idle: 100_000,
        max_drain: 800,
        first_opaque: 0,
        pipe_bytes: 1 << 16,
    };
    let peers = vec![PeerPlan::sound(), hung_up, PeerPlan::sound()];
    Schedule { peers, requests, settings, end: End::Closed }
}

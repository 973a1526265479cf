//! Any history of a record.

use proptest::prelude::*;

use super::*;

/// Something that happens to a record.
#[derive(Clone, Copy, Debug)]
enum Event {
    End(End),
    Offer,
    SettleNothing,
    SettleSome,
    SettleAll,
    Finish,
    Respond,
    CutShort,
}

fn event() -> impl Strategy<Value = Event> {
    prop::sample::select(vec![
        Event::End(End::Deadline),
        Event::End(End::StartBy),
        Event::End(End::Drop),
        Event::Offer,
        Event::SettleNothing,
        Event::SettleSome,
        Event::SettleAll,
        Event::Finish,
        Event::Respond,
        Event::CutShort,
    ])
}

proptest! {
    #[test]
    fn any_history_ends_with_at_most_one_outcome_and_a_whole_budget(
        events in prop::collection::vec(event(), 0..12),
        kind in prop::sample::select(vec![Kind::Call, Kind::Oneway]),
    ) {
        let fixture = Fixture::new();
        let record = fixture.record(1, Terms { kind, ..fixture.terms(10_000) });
        let (mut frame, mut begun, mut outcomes) = (None, false, 0);
        for (ms, event) in (1..).zip(events) {
            let now = fixture.at(ms);
            match event {
                Event::End(end) => drop(record.end(end, now)),
                Event::Respond => {
                respond(&record, now);
            }
                Event::CutShort => record.cut_short(),
                // The writer offers, settles and finishes in this order only.
                Event::Offer if frame.is_none() => {
                    if let Offer::Frame(taken) = record.offer(now) {
                        frame = Some(taken);
                    }
                }
                Event::SettleNothing if !begun => {
                    frame.take().map(|frame| record.settle(Accepted::Nothing(frame), now));
                }
                Event::SettleSome if frame.is_some() && !begun => {
                    record.settle(Accepted::Some, now);
                    begun = true;
                }
                Event::SettleAll if frame.is_some() && !begun => {
                    record.settle(Accepted::All, now);
                    frame = None;
                }
                Event::Finish if begun => {
                    record.finish(now);
                    (frame, begun) = (None, false);
                }
                _ => {}
            }
            outcomes += u32::from(outcome(&record).is_some());
        }
        record.close(&lost(), fixture.at(100));
        drop(frame);
        outcomes += u32::from(outcome(&record).is_some());
        prop_assert!(outcomes <= 1);
        fixture.assert_idle();
    }
}

//! A node asks the brokers only while it leads.

use std::sync::Arc;

use bhav::app::assemble;
use bhav::base::Clock;
use bhav::nodes::Lead;
use bhav::nodes::Term;
use bhav::ops::state_lock::InstanceLock;
use bhav::status::Report;
use bhav::store::Epoch;
use bhav::warmers::Warmers;
use sonic_rs::JsonValueTrait;

use crate::support::{Scene, TRADING, until};

/// The scheduler alone, with a leadership that the test controls.
struct Stage {
    scene: Scene,
    lead: Lead,
    warmers: Warmers,
    report: Arc<arc_swap::ArcSwapOption<Report>>,
}

impl Stage {
    fn new() -> Self {
        let scene = Scene::still_at(TRADING);
        let mut config = scene.config();
        config.public.enabled = false;
        let lock = Arc::new(InstanceLock::of(&config.state_dir));
        let mut assembled = assemble(&config, &lock, &scene.clock).unwrap();
        let lead = Lead::follower(&scene.clock);
        assembled.context.lead = lead.clone();
        let report = Arc::clone(&assembled.metric_sources.report);
        let (mailbox, reporter) = (assembled.mailbox, assembled.reporter);
        let warmers = Warmers::start(assembled.context, mailbox, reporter).unwrap();
        Self {
            scene,
            lead,
            warmers,
            report,
        }
    }

    fn clock(&self) -> &Clock {
        &self.scene.clock
    }

    /// Leads from now on, and calls upstreams after `asks_after_ms`.
    fn lead(&self, epoch: u64, asks_after_ms: u64, for_ms: u64) -> Term {
        let now_mono_ms = self.clock().monotonic_ms();
        let (asks_from_mono_ms, until_mono_ms) =
            (now_mono_ms + asks_after_ms, now_mono_ms + for_ms);
        let term = Term {
            epoch: Epoch(epoch),
            asks_from_mono_ms,
            until_mono_ms,
        };
        self.lead.grant(term);
        term
    }

    /// Advances the clock until the scheduler has run at a time this much later.
    fn go_on_s(&self, seconds: u64) {
        let from_mono_ms = self.clock().monotonic_ms() + seconds * 1_000;
        until("the scheduler", || {
            self.scene.advance_ms(250);
            self.report
                .load()
                .as_ref()
                .is_some_and(|seen| seen.seen_mono_ms >= from_mono_ms)
        });
    }

    /// Advances the clock until the broker has got more requests than `asked`.
    fn await_call(&self, asked: i64) {
        until("a call", || {
            self.scene.advance_ms(50);
            self.asked() > asked
        });
    }

    /// Number of requests that the broker got.
    fn asked(&self) -> i64 {
        let requests = &self.scene.stats()["requests"];
        let of = |route: &str| requests[route].as_i64().unwrap_or(0);
        of("broker_a.quote") + of("broker_a.historical") + of("broker_a.instruments")
    }
}

#[test]
fn no_call_is_made_before_a_term_or_after_it() {
    let stage = Stage::new();
    stage.go_on_s(2);
    assert_eq!(stage.asked(), 0, "nobody has granted anything");
    let term = stage.lead(1, 800, 20_000);
    stage.await_call(0);
    let now_mono_ms = stage.clock().monotonic_ms();
    assert!(
        (term.asks_from_mono_ms..term.until_mono_ms).contains(&now_mono_ms),
        "{now_mono_ms}"
    );
    // A call that began in the term may arrive after it.
    stage.go_on_s(21);
    let asked = stage.asked();
    stage.go_on_s(3);
    assert_eq!(stage.asked(), asked, "the term is over");
    // Ended by the test, in the middle.
    stage.lead(2, 0, 60_000);
    stage.await_call(asked);
    stage.lead.end();
    stage.go_on_s(1);
    let asked = stage.asked();
    stage.go_on_s(3);
    assert_eq!(stage.asked(), asked);
    stage.warmers.stop();
}

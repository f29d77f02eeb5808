//! One table: every entry point × level × persona × effect × state of a tool. What an entry point shows is what it lets be called, no entry point does what
//! another refuses, and every call leaves its record: requirements T3, T4, T5, M5, M6, B8, L3.

mod site;
mod table;

use registry_core::{
    Caller, ErrorKind,
    guard::{
        approval::ApprovalAnswer,
        audit::{AuditRecord, Phase},
    },
};
use site::{ENTRY_POINTS, Site};
use table::{Fate, Row, Seen, callers, decision, fate, rows};

impl Site {
    /// Makes the calls and checks everything about each; gives what the entry point has said.
    async fn check(&self, caller: &Caller, rows: &[Row], approved: bool) -> Seen {
        let (recorded, ran) = (self.audit.records().len(), self.ran.lock().unwrap().len());
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let (shown, said) = self.turn(caller, &names).await;
        let records = self.audit.records().split_off(recorded);
        let ran: Vec<(String, String)> = self.ran.lock().unwrap().split_off(ran);
        assert_eq!(said.len(), rows.len(), "{:?}: every call is answered, once", self.entry);
        let mut expected_records = 0;
        for row in rows {
            let cell = format!("{:?}: {} calls {}", self.entry, caller.user, row.name);
            let fate = if approved { Fate::Runs } else { fate(row, caller) };
            let runs = usize::from(fate == Fate::Runs);
            let own: Vec<&AuditRecord> = records.iter().filter(|record| record.tool == row.name).collect();
            assert_eq!(own.len(), 1 + runs, "{cell}: {own:?}");
            expected_records += own.len();
            let last = own[own.len() - 1];
            let kind = if let Fate::Fails(kind) = fate { Some(kind) } else { None };
            assert_eq!((last.phase, last.success), (Phase::Outcome, Some(fate == Fate::Runs)), "{cell}");
            assert_eq!(last.error, kind, "{cell}: {:?}", last.error_message);
            assert_eq!(last.decision, decision(row, fate, approved), "{cell}");
            for record in &own {
                assert_eq!((&record.user, record.level), (&caller.user, caller.level), "{cell}");
                assert_eq!(
                    (record.origin.clone(), &*record.tenant),
                    (self.entry.origin(), "default"),
                    "{cell}"
                );
                assert_eq!(record.call_id, last.call_id, "{cell}");
                assert_eq!(record.decision, last.decision, "{cell}");
            }
            if runs == 1 {
                assert_eq!((own[0].phase, own[0].success), (Phase::Intent, None), "{cell}");
            }
            let times = ran.iter().filter(|(user, tool)| *user == caller.user && *tool == row.name).count();
            assert_eq!(times, runs, "{cell}: how often its code ran");
            let refused = matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::PermissionDenied));
            assert_eq!(shown.contains(&row.name), !refused, "{cell}: listing and calling agree");
            said[&row.name].check(fate);
        }
        assert_eq!(records.len(), expected_records, "{:?}: no record of anything else", self.entry);
        (shown, said)
    }

    /// Says yes to all that waits.
    async fn approve(&self) {
        for approval in self.registry.pending_approvals().await.unwrap() {
            let answer = ApprovalAnswer {
                approve: true,
                by: "root".to_owned(),
                reason: None,
                content: None,
                arguments: None,
            };
            self.registry.answer_approval(&approval.id, answer).await.unwrap();
        }
    }
}

#[tokio::test]
async fn t_every_door_lists_and_decides_and_records_alike() {
    let (rows, callers) = (rows(), callers());
    assert_eq!((rows.len(), callers.len()), (72, 12));
    let mut sites = Vec::new();
    for entry in ENTRY_POINTS {
        sites.push(Site::start(entry, &rows, &callers).await);
    }
    for caller in &callers {
        let waiting: Vec<Row> = rows
            .iter()
            .filter(|row| fate(row, caller) == Fate::Fails(ErrorKind::ApprovalPending))
            .cloned()
            .collect();
        let mut first: Option<[Seen; 2]> = None;
        for site in &sites {
            let asked = site.check(caller, &rows, false).await;
            site.approve().await;
            // What a person has approved runs, once.
            let then = if waiting.is_empty() {
                asked.clone()
            } else {
                let then = site.check(caller, &waiting, true).await;
                site.check(caller, &waiting, false).await;
                then
            };
            let seen = [asked, then];
            match &first {
                None => first = Some(seen),
                // To the letter: the same words about the same call, whatever the entry point.
                Some(first) => {
                    assert_eq!(*first, seen, "{:?} and {:?}, {}", sites[0].entry, site.entry, caller.user)
                }
            }
        }
    }
}

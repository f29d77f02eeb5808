//! What is found of a chain of records, and the sentence that says it.

use registry_core::guard::audit::{
    chain::Fault,
    log::{ChainReport, Start},
};

use super::{
    head::{self, HeadStatement},
    key::PublicKey,
};
use crate::{
    cli::out::second,
    server::{ChainFault, ChainFindings, NotedRecord},
};

/// What was found of a tenant's chain; `head` is the last that was signed of it.
pub(super) fn of(
    report: &ChainReport,
    tenant: &str,
    head: Option<&HeadStatement>,
    keys: &[PublicKey],
) -> ChainFindings {
    let removed = report.start.as_ref().map(|start| proven(start, report, tenant, keys)).transpose();
    let (removed, unproven) = match removed {
        Ok(removed) => (removed, None),
        Err(fault) => (None, Some(fault)),
    };
    let broken = report.fault.map(|(seq, fault)| match fault {
        Fault::Missing => ChainFault::Missing { seq },
        Fault::WrongLink => ChainFault::WrongLink { seq },
        Fault::Changed => ChainFault::Changed { seq },
        Fault::Rewritten => ChainFault::Rewritten { seq },
        Fault::CutOff => ChainFault::CutOff { seq },
    });
    ChainFindings {
        records: report.records,
        sha256: report.head.sha256.clone(),
        erased: report.erased,
        removed,
        signed: head.map(|head| NotedRecord { seq: head.seq, at: head.ts }),
        fault: unproven.or(broken),
    }
}

/// The last of the records that were removed, where that is proven.
fn proven(
    start: &Start,
    report: &ChainReport,
    tenant: &str,
    keys: &[PublicKey],
) -> Result<NotedRecord, ChainFault> {
    let told = head::read_line(&start.proof, keys).map_err(|cause| ChainFault::NoProof { cause })?;
    let at = told.ts;
    let is_proof =
        told.removed && told.tenant == tenant && told.server == report.server && told.head() == start.after;
    is_proof.then_some(NotedRecord { seq: start.after.seq, at }).ok_or(ChainFault::ForeignProof)
}

/// What to say of it.
pub(super) fn sentence(findings: &ChainFindings) -> String {
    let ChainFindings { records, sha256, erased, removed, signed, fault } = findings;
    let removed = match removed {
        Some(NotedRecord { seq, at }) => format!("up to record {seq} removed on {}; ", second(*at)),
        None => String::new(),
    };
    let what = match fault {
        Some(ChainFault::NoProof { cause }) => {
            return format!("records were removed without a proof: {cause}");
        }
        Some(ChainFault::ForeignProof) => return "the proof of the removed records is for others".to_owned(),
        Some(ChainFault::Missing { seq }) => format!("record {seq} is missing"),
        Some(ChainFault::WrongLink { seq }) => format!("record {seq} does not follow the one before it"),
        Some(ChainFault::Changed { seq }) => format!("record {seq} is not what was written"),
        Some(ChainFault::Rewritten { seq }) => {
            format!("record {seq} has another hash than the one that was signed")
        }
        Some(ChainFault::CutOff { seq }) => format!("the records up to {seq}, which was signed, are missing"),
        None => {
            let erased = match erased {
                0 => String::new(),
                erased => format!("of {erased} what is personal was erased; "),
            };
            let end = match signed {
                Some(NotedRecord { seq, at }) => format!("signed up to record {seq} on {}", second(*at)),
                None => "no signed head of it is known, so nothing proves who has written it, and records may be missing at the end".to_owned(),
            };
            return format!(
                "{removed}{erased}{records} records, whole; the last has the hash {sha256}; {end}"
            );
        }
    };
    format!("{removed}{records} records are whole, then {what}")
}

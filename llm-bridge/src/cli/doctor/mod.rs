//! `toolrack doctor`: what a model can do with tools, seen by asking it, and the settings that serve it best.

mod best;
mod cache;
mod calls;
mod choice;
mod context;
mod pictures;
mod plain;
mod raw;
mod report;
mod served;
mod session;
mod table;
mod tools;
mod write;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use indicatif::ProgressBar;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Settings,
    out::{print_line, tell},
    progress::progress,
    stopped_by_ctrl_c,
};
use crate::{
    server::EXAMINATION_SECONDS,
    turn::ModelRoute,
    upstream::{UpstreamError, UpstreamModel},
};
use best::Best;
use calls::Way;
use context::Context;
use report::{Finding, Probe, Report, Verdict};
pub(super) use served::ServedDoctor;
use session::{Session, Unanswered};

/// Below this many tokens of context there is little room beside the tools.
const SMALL_CONTEXT: u64 = 8192;
/// As many names of models are listed in an error.
const LISTED: usize = 12;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The model's name [default: `model` of the settings, or the model server's first]
    #[arg(value_name = "MODEL")]
    name: Option<String>,
    /// Write the settings that serve it best into the configuration file
    #[arg(long)]
    write: bool,
    /// Print JSON: see docs/doctor.md
    #[arg(long)]
    json: bool,
    /// The model's chat template for the raw route, a .jinja or a .gguf file [default: `template` of the model, or the server's]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// End after so many seconds; what was not tried by then is marked. One answer may take a fifth of them
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(EXAMINATION_SECONDS))]
    seconds: u64,
}

/// Asks the model, and prints what was seen. The exit code tells whether the probes ran, not what they have seen.
pub(super) async fn run(
    arguments: Arguments,
    settings: &Settings,
    host_tables: &[&str],
) -> Result<ExitCode, String> {
    let bar = progress(None, "{spinner} {msg} {elapsed}");
    let template = match &arguments.template {
        // It is written into a file that may be read from elsewhere.
        Some(file) => Some(std::path::absolute(file).map_err(|error| format!("--template: {error}"))?),
        None => None,
    };
    let (stop, all) = (stopped_by_ctrl_c(), Duration::from_secs(arguments.seconds));
    let asking =
        Asking { name: arguments.name.as_deref(), template, all, bar: bar.clone(), stop: stop.clone() };
    let looked = look(asking, settings).await;
    bar.finish_and_clear();
    let Looked { mut report, gone } = looked?;
    let written = match arguments.write {
        true => write::write(settings, host_tables, &report.settings, &report.model).map(Some),
        false => Ok(None),
    };
    report.written = written.as_ref().ok().cloned().flatten();
    if arguments.json {
        print_line(serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?)?;
    } else {
        table::print(&report)?;
        match (&report.written, &report.toml) {
            (Some(written), _) => tell(written),
            (None, Some(_)) if !arguments.write => tell("--write puts them into the configuration file"),
            _ => {}
        }
    }
    written?;
    match gone {
        Some(gone) => Err(format!("the model server went away: {gone}")),
        None if stop.is_cancelled() => Ok(ExitCode::FAILURE),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// How a model is asked.
struct Asking<'a> {
    /// The model's name; by default the one of the settings, or the model server's first.
    name: Option<&'a str>,
    /// The file of its template; by default the one of the settings.
    template: Option<PathBuf>,
    /// For how long.
    all: Duration,
    /// Shows what is being looked at.
    bar: ProgressBar,
    /// Ends it, with what was seen by then.
    stop: CancellationToken,
}

/// What has come of it.
struct Looked {
    report: Report,
    /// Why the server was not asked to the end: it went away.
    gone: Option<String>,
}

/// Asks a model.
async fn look(asking: Asking<'_>, settings: &Settings) -> Result<Looked, String> {
    let upstream = settings.upstream().await?;
    if upstream.is_demo() {
        return Err(format!("there is no model server to ask; {}", UpstreamModel::HOW_TO_PROVIDE));
    }
    let chat = settings.chat_settings();
    let began = Instant::now();
    let models = upstream.models().await.map_err(|error| error.to_string())?;
    let asked = asking.name.or(settings.model.as_deref());
    let no_model = |error: UpstreamError| without(asked, &error, &models);
    let mut route = upstream.route(asked).await.map_err(no_model)?;
    route.set_context(chat.context_of(route.model()));
    let full_name = route.full_name();
    let entry = models.iter().find(|model| {
        let name = model.get("id").and_then(Value::as_str);
        name.is_some_and(|name| name == route.model() || name == full_name)
    });
    let mut report = Report::new(&route, entry.is_some());
    let mut session = Session::new(route, &chat, asking.all, asking.bar);
    let template = asking.template.or_else(|| chat.models.template(&report.model));
    let examined =
        asking.stop.run_until_cancelled(examine(&mut session, &mut report, entry, template.as_deref())).await;
    if let Some(Err(unanswered)) = examined {
        return Err(match unanswered {
            Unanswered::Refused(error) => without(Some(&full_name), &error, &models),
            Unanswered::Unread(why) | Unanswered::Failed(why) => why,
            Unanswered::Late => "there was no time for an answer; give it more with --seconds".to_owned(),
        });
    }
    report.requests = session.requests;
    report.seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    report.finish();
    advise(&mut report, &session);
    Ok(Looked { report, gone: session.gone })
}

/// Asks all there is to ask. Each finding is in the report as soon as it is known.
async fn examine(
    session: &mut Session<'_>,
    report: &mut Report,
    entry: Option<&Value>,
    template: Option<&Path>,
) -> Result<(), Unanswered> {
    session.look_at("first answer");
    let counted = session.ask_first(Session::question(plain::COUNT, plain::COUNT_TOKENS)).await?;
    report.set(Probe::Speed, plain::speed(&counted));
    report.set(Probe::Streams, plain::streams(&counted, None));
    // Servers know the context of a model that is loaded.
    let context = Context::ask(&session.route, entry).await;
    report.set(Probe::Context, context.finding());

    let (finding, of_template) = raw::template(session, template).await;
    report.set(Probe::Template, finding);
    session.look_at("native calls");
    let (finding, native) = calls::native(session).await;
    report.set(Probe::Native, finding);
    report.set(Probe::Streams, plain::streams(&counted, native.in_pieces));
    session.look_at("calls as text");
    let (finding, text) = calls::text(session, &native).await;
    let finding_is_no = finding.is(Verdict::No);
    report.set(Probe::Text, finding);
    session.look_at("the raw route");
    let (finding, raw) = raw::raw(session, (template, of_template), &native, &text).await;
    report.set(Probe::Route, finding);
    let is_raw = session.chat.models.route(&report.model) == Some(ModelRoute::Raw);
    let best = Way::best(&native, &text, &raw, is_raw);
    report.settings = Best::of(best, &native, &text, &raw, session.chat, &report.model);
    report.toml = report.settings.toml(&report.model);
    let (way, right) = best.map_or((None, 0), |(way, right)| (Some(way), right));
    if right == 0 && finding_is_no {
        let none = "It made no right call in any way that was tried; take a model that is trained for tools.";
        report.advice.push(none.to_owned());
    } else if right > 0 && calls::is_seldom(right) {
        report
            .advice
            .push(format!("It made the right call {right} of {} times; take a larger model.", calls::all()));
    }
    session.look_at("two calls at once");
    report.set(Probe::Parallel, calls::parallel(session, way, &raw).await);
    let refused = || Finding::not_tried("the server refuses tools");
    session.look_at("required call");
    let required = if native.is_refused { refused() } else { choice::required(session).await };
    report.set(Probe::Required, required);
    session.look_at("call of one tool");
    let named = if native.is_refused { refused() } else { choice::named(session).await };
    report.set(Probe::Named, named);

    session.look_at("thinking");
    report.set(Probe::Thinking, plain::thinking(session).await);
    session.look_at("JSON by a schema");
    report.set(Probe::Structured, plain::structured(session).await);
    session.look_at("prompt cache");
    report.set(Probe::Cache, cache::cache(session, context.tokens).await);
    // Some servers break down over a picture.
    session.look_at("pictures");
    report.set(Probe::Pictures, pictures::pictures(session).await);
    Ok(())
}

/// What to do besides the settings.
fn advise(report: &mut Report, session: &Session<'_>) {
    let is = |probe: Probe, verdict| report.probes.get(&probe).is_some_and(|finding| finding.is(verdict));
    let mut advice = std::mem::take(&mut report.advice);
    if !report.server.lists_model {
        advice
            .push(format!("The server does not list a model `{}`, and answers all the same.", report.model));
    }
    let kind = session.route.kind();
    if is(Probe::Native, Verdict::Refused)
        && let Some(kind) = kind
    {
        advice.push(format!("For native calls: {}.", kind.for_tools));
    }
    if session.thinking.is_unopened && !session.chat.thinking {
        advice.push("Its answers begin inside its thinking: set `thinking = true` in [chat].".to_owned());
    }
    let tokens =
        report.probes.get(&Probe::Context).and_then(|finding| finding.figures.get("tokens")?.as_u64());
    if tokens.is_some_and(|tokens| tokens < SMALL_CONTEXT) {
        let small = "The context is small for tools and their results: start the server with a larger one.";
        advice.push(small.to_owned());
    }
    report.advice = advice;
}

/// That a model cannot be asked, with those that there are.
fn without(asked: Option<&str>, error: &UpstreamError, models: &[Value]) -> String {
    let names: Vec<&str> = models.iter().filter_map(|model| model.get("id")?.as_str()).collect();
    if names.is_empty() {
        return error.to_string();
    }
    let more = if names.len() > LISTED { ", …" } else { "" };
    let listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    match asked.filter(|asked| !names.contains(asked)) {
        Some(asked) => format!("there is no model `{asked}` ({error}); there are: {listed}{more}"),
        None => error.to_string(),
    }
}

//! Runs the calls of an answer, and shows the person what comes of them: the parts of results as they come, and results that are the
//! answer themselves.

use std::{collections::HashMap, sync::Arc};

use registry_core::Content;
use toolrack_apis::TurnEvent;

use super::{
    call::FoundCall,
    limits::Reached,
    offer::Target,
    parts::Presented,
    run::{End, Run},
    runner::{self, About, Outcomes, Results, Told},
    shorten::shorten,
};

/// What the model gets as a result whose text is the answer that follows.
const IS_ANSWER: &str = "[The user has been shown this result. It is the answer that follows.]";
/// Where the text of a stream is longer than may be shown.
const REST: &str = "\n[… the rest was left out]";

/// What has been shown of the calls of one answer.
#[derive(Debug, Default)]
pub(super) struct ShownOfCalls {
    /// The text of each, by its id.
    texts: HashMap<String, String>,
    /// The call whose text is being written.
    open: Option<String>,
    /// How many characters of texts that come as streams.
    streamed: usize,
}

impl ShownOfCalls {
    fn text(&mut self, id: &str, text: &str, goes_on: bool) {
        let all = self.texts.entry(id.to_owned()).or_default();
        if !goes_on && !all.is_empty() && !text.is_empty() {
            all.push_str("\n\n");
        }
        all.push_str(text);
    }
}

impl Run {
    pub(super) async fn send_all(&mut self, events: &mut Vec<TurnEvent>) -> Result<(), End> {
        if let Some(required) = &mut self.required {
            required.hold(events);
        }
        for event in events.drain(..) {
            let event = match event {
                TurnEvent::Text(text) => {
                    self.shown.say(&text);
                    TurnEvent::Text(self.paragraphs.join(text))
                }
                TurnEvent::Message { id, text, part } => {
                    self.shown.show(&text);
                    TurnEvent::Message { id, text: self.paragraphs.join(text), part }
                }
                event => event,
            };
            let place = match self.events.try_reserve() {
                Ok(place) => place,
                Err(_) => self.events.reserve().await.map_err(|_| End::Gone)?,
            };
            self.unsettled.note(&event);
            place.send(event.into());
        }
        Ok(())
    }

    /// Runs the server's calls among these.
    pub(super) async fn run_calls(&mut self, calls: &[FoundCall]) -> Result<Results, End> {
        let mut shown = ShownOfCalls::default();
        let limit = self.result_limit();
        let names = calls.iter().filter_map(FoundCall::server_tool).map(str::to_owned).collect();
        self.listed.note(|turn| turn.tools = names);
        let flows = self.flows(calls);
        self.outcomes = Outcomes::default();
        let (offer, events, clock, outcomes) = (&self.offer, &self.events, &self.clock, &self.outcomes);
        let about = About { offer, events, clock, outcomes, limit };
        let (running, mut parts) = runner::begin(calls, &flows, about, &mut self.meter, &self.tools).await;
        let clock = Arc::clone(&self.clock);
        let mut finishing = std::pin::pin!(running.finish());
        let mut results = loop {
            tokio::select! {
                biased;
                Some((id, part)) = parts.recv() => self.show(&id, part, true, &mut shown).await?,
                results = &mut finishing => break results,
                () = clock.run_out() => {
                    return Err(End::Limit(Reached::Time(self.backend.settings().limits.max_seconds)));
                }
            }
        };
        self.listed.note(|turn| turn.tools.clear());
        self.usage.add(std::mem::take(&mut results.usage), self.api);
        self.has_run_tools |= results.answers.iter().any(Option::is_some);
        while let Ok((id, part)) = parts.try_recv() {
            self.show(&id, part, true, &mut shown).await?;
        }
        for told in &mut results.told {
            self.tell(told, &mut shown).await?;
        }
        Ok(results)
    }

    /// Shows what a call has given beside what it has shown already.
    async fn tell(&mut self, told: &mut Told, shown: &mut ShownOfCalls) -> Result<(), End> {
        let has_streamed = shown.texts.contains_key(&told.id);
        let most = self.backend.settings().limits.max_result_characters;
        // In an answer of a given form there is no room for what tools say.
        if self.form.is_some() || self.offer.owes_client_call() {
            told.ending = None;
        }
        shown.open = None;
        if let Some(text) = &mut told.ending
            && !has_streamed
            && !text.is_empty()
        {
            let text = shorten(std::mem::take(text), most);
            shown.text(&told.id, &text, false);
            self.paragraphs.part();
            self.send_all(&mut vec![TurnEvent::Text(text)]).await?;
        }
        if let Some(message) = told.message.take().filter(|_| self.form.is_none()) {
            let text = shorten(message, most);
            shown.text(&told.id, &text, false);
            self.paragraphs.part();
            self.send_all(&mut vec![TurnEvent::Message { id: told.id.clone(), text, part: None }]).await?;
        }
        for part in std::mem::take(&mut told.parts).into_iter().filter(|_| !has_streamed) {
            self.show(&told.id, part, false, shown).await?;
        }
        if let Some(ending) = &mut told.ending {
            *ending = shown.texts.remove(&told.id).unwrap_or_default();
        }
        Ok(())
    }

    /// Shows a part of a result; of a stream, a text is the next piece of one.
    async fn show(
        &mut self,
        id: &str,
        part: Content,
        is_stream: bool,
        shown: &mut ShownOfCalls,
    ) -> Result<(), End> {
        let is_piece = is_stream && matches!(part, Content::Text { .. });
        if is_piece && shown.streamed > self.backend.settings().limits.max_result_characters {
            return Ok(());
        }
        let user = self.offer.context.caller().user.as_str();
        let Some(Presented { mut text, part }) = self.backend.present(user, part).await else {
            return Ok(());
        };
        if is_piece {
            shown.streamed += text.chars().count();
            if shown.streamed > self.backend.settings().limits.max_result_characters {
                text.push_str(REST);
            }
        }
        let goes_on = is_piece && shown.open.as_deref() == Some(id);
        shown.open = is_piece.then(|| id.to_owned());
        shown.text(id, &text, goes_on);
        if !goes_on {
            self.paragraphs.part();
        }
        // Programs get it beside an answer of a given form, too.
        if self.form.is_some() {
            text.clear();
        }
        self.send_all(&mut vec![TurnEvent::Message { id: id.to_owned(), text, part: Some(part) }]).await
    }

    /// The text that the person has as the answer, where a result has ended the turn. The model gets it as its own, and not in the result
    /// again, unless it goes on with the client's results.
    pub(super) fn answered_by_tools(&self, calls: &[FoundCall], results: &mut Results) -> Option<String> {
        let endings = results.told.iter_mut().filter_map(|told| Some((&told.id, told.ending.take()?)));
        let endings: HashMap<&String, String> = endings.collect();
        if endings.is_empty() || calls.iter().any(|call| call.target == Target::Client) {
            return None;
        }
        let mut texts = Vec::new();
        for (call, answer) in calls.iter().zip(&mut results.answers) {
            if let (Some(text), Some(answer)) = (endings.get(&call.id), answer)
                && !text.is_empty()
            {
                answer.text = IS_ANSWER.to_owned();
                texts.push(text.as_str());
            }
        }
        Some(texts.join("\n\n"))
    }
}

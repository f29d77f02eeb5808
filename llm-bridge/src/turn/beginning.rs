//! What a turn begins with: what the request and the server have to offer, and the conversation put together.

use std::{sync::Arc, time::Duration};

use registry_core::{Caller, Conversation, ToolContext};
use tokio_util::sync::CancellationToken;
use toolrack_apis::{BadRequest, EarlierAnswer, Message, Request, Role};

use super::{
    Backend, flow, narrow,
    offer::Offer,
    prompt,
    transcript::{Place, Resuming, key_of_chat},
};

/// What a model's name ends with where the server's tools are not wanted.
pub(crate) const PLAIN: &str = ":plain";

/// What a request and the server have to offer.
pub(super) fn prepare(
    backend: &Backend,
    request: &mut Request,
    caller: Caller,
    cancellation: CancellationToken,
) -> Result<Arc<Offer>, BadRequest> {
    if let Some(name) = request.model.as_deref().and_then(|name| name.strip_suffix(PLAIN)) {
        request.model = Some(name.to_owned());
        request.extension.allowed_tools = Some(Vec::new());
    }
    let context = context_of(backend, request, caller)?.with_cancellation(cancellation);
    Offer::new(backend, request, context).map(Arc::new)
}

/// Puts the conversation together: what was before, with what the client has not seen of it, and what the model has to know before it.
/// `model` is the full name of the model; a turn with the token `resuming` goes on with one that was cut off.
pub(super) async fn assemble(
    backend: &Backend,
    request: &mut Request,
    offer: &Offer,
    model: &str,
    resuming: Option<CancellationToken>,
) -> Place {
    let sent = flow::sent_by_client(request);
    let instructions = usize::from(request.conversation.has_instructions).min(request.messages.len());
    let mut answers = std::mem::take(&mut request.conversation.answers);
    for EarlierAnswer { messages, .. } in &mut answers {
        *messages = messages.start + instructions..messages.end + instructions;
    }
    request.messages.splice(instructions..instructions, request.conversation.earlier.drain(..));
    offer.found.add_earlier(&request.conversation.found);
    let owner = (backend.registry().tenant(), offer.context.caller().user.as_str());
    let resuming = resuming.map(|turn| Resuming { turn, state: backend.registry().state_store() });
    let mut place =
        backend.transcripts.put_back(owner, model, &mut request.messages, answers, resuming).await;
    let mut keys = std::mem::take(&mut request.conversation.read);
    keys.extend(offer.context.conversation().chat_id.as_deref().map(key_of_chat));
    place.read.add(&backend.transcripts.read_before(owner, &keys).await);
    place.read.add(&sent);
    offer.found.add_earlier(&place.found);
    backend.fit_pictures(&mut request.messages).await;
    let settings = backend.settings();
    let prompt = if offer.has_tools() { &settings.system_prompt_with_tools } else { &settings.system_prompt };
    prompt::add_system_prompt(&mut request.messages, prompt, &offer.tag_lines);
    place
}

/// The caller as the request narrows it, with the conversation around.
fn context_of(backend: &Backend, request: &Request, caller: Caller) -> Result<ToolContext, BadRequest> {
    let caller = narrow::narrow(backend.registry(), request, caller)?;
    let extension = &request.extension;
    let user_message = request.messages.iter().rfind(|message| message.role == Role::User);
    let context = backend.context(caller).with_conversation(Conversation {
        user_message: user_message.map(Message::plain_text),
        chat_id: extension.chat_id.clone(),
        kb_context: extension.kb_context.clone(),
        confidence: extension.confidence,
    });
    // A client without a stream hears nothing while the call waits; the answer says that it does.
    let patience = extension.approval_wait_seconds.or((!request.stream).then_some(0));
    let question_wait = Duration::from_secs(extension.question_wait_seconds.unwrap_or(0));
    let said = context.conversation().user_message.clone().unwrap_or_default();
    let now = backend.registry().clock().now();
    let context = context.with_questions().with_question_wait(question_wait).with_reply(said, now);
    Ok(match patience {
        Some(seconds) => context.with_approval_wait(Duration::from_secs(seconds)),
        None => context,
    })
}

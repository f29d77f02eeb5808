// One answer of the model: text, thinking, calls and notices in the order in which they came.

import { useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t, told } from '../state/language.js';
import { revision, textOf } from '../state/answer.js';
import { sourcesOf } from '../state/sources.js';
import { busy, changes, chats, model, models, PICTURES_REFUSED } from '../state/store.js';
import { askWithoutPictures, goOn, regenerate } from '../state/turn.js';
import { duration, number } from '../text/format.js';
import { Branches } from './branches.js';
import { CallCard } from './call.js';
import { CopyButton } from './copy.js';
import { Icon } from './icon.js';
import { Sources } from './sources.js';
import { Text } from './text.js';

/** @import { CallPart, Message, Part, ReasoningPart, Source } from '../state/types.d.ts' */

/** So many parts stand together, so that the browser passes over them at once where they are far from the window. */
const GROUP = 50;

/** @typedef {{ part: Part, times: number, last: boolean, version: number, made: any }} View */

/** @param {{ message: Message, past: boolean }} properties */
export function Answer({ message, past }) {
  void changes(message).value;
  const grows = message.status === 'running';
  const sources = sourcesOf(message);
  const views = useRef(/** @type {View[]} */ ([]));
  // The views of parts that are as they were are given again as they are, so that nothing is asked of them.
  const view = (/** @type {number} */ index, /** @type {Part} */ part, /** @type {number} */ times, /** @type {boolean} */ last) => {
    const version = revision(part);
    const known = views.current[index];
    if (known && known.part === part && known.times === times && known.last === last && known.version === version) return known.made;
    const made = html`<${PartView} key=${index} part=${part} times=${times} grows=${last} version=${version} sources=${sources} />`;
    views.current[index] = { part, times, last, version, made };
    return made;
  };
  const groups = useRef(/** @type {{ made: any[], isFull: boolean, group: any }[]} */ ([]));
  const group = (/** @type {number} */ index, /** @type {any[]} */ made, /** @type {boolean} */ isFull) => {
    const known = groups.current[index];
    if (known && known.isFull === isFull && known.made.length === made.length && known.made.every((one, at) => one === made[at])) return known.group;
    const one = html`<div class=${isFull ? 'parts full' : 'parts'} key=${index}>${made}</div>`;
    groups.current[index] = { made, isFull, group: one };
    return one;
  };
  const parts = folded(message.parts).map(({ part, times }, index) => view(index, part, times, grows && part === message.parts.at(-1)));
  return html`<article class=${`answer${message.parts.length > 0 ? '' : ' empty'}${past ? ' past' : ''}`} data-id=${message.id} aria-label=${t.answer} aria-busy=${grows ? 'true' : undefined}>
    <div class="answer-body">
      ${Array.from({ length: Math.ceil(parts.length / GROUP) }, (_, index) => group(index, parts.slice(index * GROUP, (index + 1) * GROUP), (index + 1) * GROUP < parts.length))}
      ${!grows && html`<${Sources} sources=${sources} />`}
      <${Ending} message=${message} />
    </div>
    ${grows && !busyElsewhere(message) && html`<p class="waiting"><span></span><span></span><span></span><span class="unseen">${t.waitingForModel}</span></p>`}
    ${!grows && html`<${Foot} message=${message} />`}
  </article>`;
}

/**
 * Equal calls one after the other are one card.
 * @param {Part[]} parts
 */
function folded(parts) {
  /** @type {{ part: Part, times: number }[]} */
  const shown = [];
  for (const part of parts) {
    const before = shown.at(-1);
    if (before && part.type === 'call' && before.part.type === 'call' && isEqual(before.part, part)) {
      before.part = part;
      before.times += 1;
    } else shown.push({ part, times: 1 });
  }
  return shown;
}

/** What the cards of calls that are over say. @type {WeakMap<CallPart, string>} */
const cards = new WeakMap();

/**
 * Whether a card would say the same of both: a call is not folded before it is over.
 * @param {CallPart} one
 * @param {CallPart} other
 */
function isEqual(one, other) {
  const [same, more] = [one, other].map((call) => {
    const { name, state, arguments: args, result, error, said, parts, side_effects: effects, retry_at: retry } = call;
    if (state === 'running' || state === 'writing' || said || parts?.length || effects?.length || retry) return null;
    const known = cards.get(call) ?? JSON.stringify([name, state, args, result, error]);
    cards.set(call, known);
    return known;
  });
  return same !== null && same === more;
}

/**
 * Growing text, open thinking and a spinning card already show that something goes on.
 * @param {Message} message
 */
function busyElsewhere(message) {
  const last = message.parts.at(-1);
  return last?.type === 'text' || last?.type === 'reasoning'
    || message.parts.some((part) => part.type === 'call' && (part.state === 'running' || part.state === 'writing'));
}

/** @param {{ part: Part, times: number, grows: boolean, version: number, sources: readonly Source[] }} properties */
function PartView({ part, times, grows, version, sources }) {
  if (part.type === 'text') return html`<${Text} text=${part.text} grows=${grows} sources=${sources} />`;
  if (part.type === 'reasoning') return html`<${Thinking} part=${part} grows=${grows} version=${version} />`;
  if (part.type === 'call') return html`<${CallCard} call=${part} times=${times} version=${version} />`;
  if (part.type === 'notice') return html`<p class="notice">${part.text}</p>`;
  return null;
}

/** @param {{ part: ReasoningPart, grows: boolean }} properties */
function Thinking({ part, grows }) {
  const [open, setOpen] = useState(/** @type {boolean | null} */ (null));
  const shown = open ?? grows;
  const title = grows ? t.thinking : part.ms ? t.thoughtFor(duration(part.ms)) : t.thought;
  return html`<details class=${`thinking${grows ? '' : ' over'}`} open=${shown} onToggle=${(/** @type {any} */ event) => { if (event.target.open !== shown) setOpen(event.target.open); }}>
    <summary><span class="chevron"><${Icon} name="chevron" /></span><span>${title}</span></summary>
    ${shown && html`<div class="thinking-text"><div>${part.text}</div></div>`}
  </details>`;
}

/** @param {{ message: Message }} properties */
function Ending({ message }) {
  const { status, error, finish_reason: reason } = message;
  if (status === 'running') return null;
  if (status === 'failed') {
    return html`<div class="error" role="alert"><p>${error ? told(error) : t.errorWithoutMessage}</p>
      ${error?.type === PICTURES_REFUSED && html`<button type="button" class="retry without-pictures" disabled=${busy} onClick=${() => askWithoutPictures(message)}>${t.askWithoutPictures}</button> `}
      <button type="button" class="retry" onClick=${() => regenerate(message)}><${Icon} name="retry" /><span>${t.tryAgain}</span></button></div>`;
  }
  if (status === 'stopped') return html`<p class="notice">${t.stopped}</p>`;
  if (status === 'cut_off' || reason === 'length') {
    return html`<p class="notice">${status === 'cut_off' ? t.serverEnded : t.cutByLength}
      ${chats.value !== null && html` <button type="button" class="quiet go-on" disabled=${busy} onClick=${() => goOn(message)}><${Icon} name="forward" /><span>${t.goOn}</span></button>`}</p>`;
  }
  if (reason === 'content_filter') return html`<p class="notice">${t.cutByFilter}</p>`;
  return message.parts.length === 0 && !message.shown ? html`<p class="notice">${t.emptyAnswer}</p>` : null;
}

/** @param {{ message: Message }} properties */
function Foot({ message }) {
  const text = textOf(message);
  const { duration_ms: ms, usage, status } = message;
  const others = models.value.filter((name) => name !== (message.model ?? model.value));
  const tokens = usage?.completion_tokens;
  const facts = [models.value.length > 1 ? message.model : null, ms ? duration(ms) : null, tokens ? t.tokens(number(tokens), tokens) : null].filter(Boolean);
  return html`<div class="foot actions">
    ${facts.length > 0 && html`<span class="facts">${facts.join(' · ')}</span>`}
    <${Branches} message=${message} />
    ${text && html`<${CopyButton} text=${() => text} />`}
    ${status !== 'failed' && html`<button type="button" class="quiet regenerate" disabled=${busy} title=${t.regenerateTitle} onClick=${() => regenerate(message)}><${Icon} name="retry" /><span>${t.regenerate}</span></button>`}
    ${others.length > 0 && html`<label class="other-model"><span class="unseen">${t.regenerateWith}</span><select disabled=${busy} value="" onChange=${(/** @type {any} */ event) => regenerate(message, event.target.value)}>
      <option value="">${t.regenerateWith}</option>${others.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`}
  </div>`;
}

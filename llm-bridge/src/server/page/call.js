// The card of one tool call.

import { answerApproval } from './api.js';
import { copyButton, duration, el, icon, linked } from './dom.js';

/** Longest result shown and kept; copying gives what is kept, too. */
const SHOWN = 20_000;
/** The same for the tool's word to the user, which is always in sight. */
const SAID = 4_000;
const BRIEF = 160;

const STATES = { running: 'running', ok: 'done', failed: 'failed', cancelled: 'cancelled' };

/** What is known of a call after `call_started`; plain data, so that it can be stored. */
export function started(event) {
  return {
    kind: 'call',
    id: event.id,
    name: event.name ?? 'tool',
    arguments: capped(event.arguments),
    dialect: event.dialect ?? null,
    state: 'running',
  };
}

/** The change that `call_finished` makes. */
export function finished(event) {
  return {
    state: event.success ? 'ok' : 'failed',
    approval: null,
    result: capped(event.result),
    // A call that a person refused is no error, and says so in its message.
    said: event.success && event.message?.trim() ? capped(event.message.trim(), SAID) : null,
    error: event.success ? null : (event.error ?? event.message ?? 'The tool failed without a message.'),
    duration_ms: event.duration_ms ?? null,
  };
}

/** Shows a call and follows its changes. */
export class CallCard {
  constructor(call) {
    this.call = call;
    this.since = performance.now();
    this.state = el('span', { class: 'call-state' });
    this.time = el('span', { class: 'call-time' });
    this.line = el('span', { class: 'call-line' });
    this.bar = el('progress', { max: 1, 'aria-label': 'Progress' });
    this.ask = el('div', { class: 'call-ask', hidden: true });
    this.body = el('div', { class: 'call-body' });
    const head = el('summary', {}, this.state, el('code', { class: 'call-name' }, call.name),
      el('span', { class: 'call-brief' }, argumentsBrief(call.arguments)), this.time,
      el('span', { class: 'chevron' }, icon('chevron')), this.line, this.bar);
    this.card = el('details', { class: 'call', 'data-name': call.name }, head, this.ask, this.body);
    // Below the card, which may be closed: this is for the user, the result is for the model.
    this.said = el('p', { class: 'call-said' });
    this.element = el('div', {}, this.card, this.said);
    this.update({});
    if (call.state === 'running') {
      this.clock = setInterval(() => {
        this.#showTime();
        this.#showTimeLeft();
      }, 1000);
    }
  }

  /** Takes over what has changed. */
  update(change) {
    const { call } = this;
    Object.assign(call, change);
    if (call.state !== 'running') clearInterval(this.clock);
    this.card.dataset.state = call.state;
    this.state.replaceChildren(mark(call.state), el('span', { class: 'unseen' }, STATES[call.state]));
    this.line.textContent = statusLine(call);
    this.line.hidden = this.line.textContent === '';
    this.#showProgress();
    this.#showTime();
    this.#showAsk();
    this.#showBody();
    this.said.replaceChildren(...linked(call.said ?? ''));
    this.said.hidden = !call.said;
  }

  // The arguments stand below: nobody should allow what he has not seen.
  #showAsk() {
    const { approval, state } = this.call;
    const asking = Boolean(approval) && state === 'running';
    if (asking && this.ask.hidden) {
      const answer = (approve, text) => el('button', { type: 'button', class: approve ? 'allow' : 'refuse', onclick: () => this.#answer(approval, approve) }, text);
      this.timeLeft = el('span', { class: 'call-time' });
      this.ask.replaceChildren(
        el('p', {}, 'This call cannot be undone. Run it? ', this.timeLeft),
        el('div', { class: 'call-answers' }, answer(true, 'Allow once'), answer(false, 'Refuse')));
      this.card.open = true;
    }
    this.ask.hidden = !asking;
    this.#showTimeLeft();
  }

  /** How long the question can still be answered; after that the answer is no. */
  #showTimeLeft() {
    const left = Math.max(0, Math.ceil((this.call.answer_by - Date.now()) / 1000));
    if (this.ask.hidden || !Number.isFinite(left)) return;
    this.timeLeft.textContent = left >= 60 ? `${Math.ceil(left / 60)} min left` : `${left} s left`;
  }

  async #answer(id, approve) {
    const buttons = [...this.ask.querySelectorAll('button')];
    for (const button of buttons) button.disabled = true;
    try {
      await answerApproval(id, approve);
      this.update({ approval: null, message: approve ? 'Allowed' : 'Refused' });
    } catch (error) {
      for (const button of buttons) button.disabled = false;
      this.ask.firstChild.textContent = error.message;
    }
  }

  #showProgress() {
    const { progress, state } = this.call;
    this.bar.hidden = state !== 'running' || typeof progress !== 'number';
    if (!this.bar.hidden) this.bar.value = Math.min(1, Math.max(0, progress));
  }

  #showTime() {
    const { state, duration_ms: ms } = this.call;
    const waited = performance.now() - this.since;
    if (state === 'running') this.time.textContent = waited < 950 ? 'running' : `${Math.round(waited / 1000)} s`;
    else {
      const word = state === 'ok' ? null : STATES[state];
      this.time.textContent = [word, typeof ms === 'number' ? duration(ms) : null].filter(Boolean).join(' · ') || 'done';
    }
  }

  #showBody() {
    const { arguments: args, result, error, dialect } = this.call;
    this.body.replaceChildren(...[
      block('Arguments', args),
      error ? block('Error', error) : null,
      block('Result', result),
      dialect ? el('p', { class: 'call-note' }, dialect === 'native' ? 'A native tool call.' : `Written as text (${dialect}).`) : null,
    ].filter(Boolean));
  }
}

function mark(state) {
  if (state === 'running') return el('span', { class: 'spinner' });
  return icon(state === 'ok' ? 'done' : state);
}

function statusLine({ state, message, error, result, approval }) {
  if (state === 'running') return approval ? 'Waiting for your approval' : (message ?? '');
  if (state === 'failed') return oneLine(error ?? '');
  if (state === 'cancelled') return '';
  return result === undefined || result === null ? '' : oneLine(typeof result === 'string' ? result : JSON.stringify(result));
}

function argumentsBrief(args) {
  if (args === null || args === undefined) return '';
  if (typeof args !== 'object') return oneLine(String(args));
  return oneLine(Object.entries(args).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', '));
}

function oneLine(text) {
  const line = text.slice(0, BRIEF * 4).replace(/\s+/g, ' ').trim();
  return line.length > BRIEF ? `${line.slice(0, BRIEF)}…` : line;
}

function block(title, value) {
  if (value === undefined || value === null) return null;
  const text = pretty(value);
  return el('div', { class: 'block' },
    el('div', { class: 'block-head' }, el('h4', {}, title), copyButton(() => text)),
    el('pre', { tabindex: 0, role: 'region', 'aria-label': title }, text === '' ? '(empty)' : text));
}

function pretty(value) {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  // Many tools return JSON as text.
  if (/^\s*[[{]/.test(value)) {
    try {
      return JSON.stringify(JSON.parse(value), null, 2);
    } catch {
      return value;
    }
  }
  return value;
}

function capped(value, most = SHOWN) {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  if (text.length <= most) return value;
  return `${text.slice(0, most)}\n… ${(text.length - most).toLocaleString('en')} more characters are not shown`;
}

// Cards of calls and what they ask: shown whole, with every character in it, each by its own clock, with a way back from each form.

import { openKept } from './kept.mjs';
import { ANSWERS, NOW, running } from './kept_data.mjs';
import { ERASE, answerText, ask, check, equal, idle, open, shot } from './support.mjs';

const CHAT = ANSWERS['/api/chats/chat_1'];
const WIDE = { viewport: { width: 1280, height: 900 } };
const at = (seconds) => new Date(NOW.getTime() + seconds * 1000).toISOString();

/** A call that waits for a yes. */
const asking = (id, about = {}) => ({
  ...CHAT.messages[1].parts[1], id, name: 'drop_file', state: 'running', arguments: { path: 'notes/a.md' }, result: null, duration_ms: null, approval: `approval-${id}`, answer_by: at(300), ...about,
});
const approval = (id, about = {}) => ({ ...ANSWERS['/api/approvals'].approvals[0], id: `approval-${id}`, ...about });

export const sse = (...chunks) => chunks.map(({ event, ...data }, index) => `${event ? `event: ${event}\n` : ''}id: ${index + 1}\ndata: ${JSON.stringify(data.data ?? data)}\n\n`).join('');
const card = (page, name = 'drop_file') => page.locator(`.call[data-name="${name}"]`).last();

export async function approvals(browser) {
  await check('a16 arguments that read long are shown whole where a person decides about them', async () => {
    const args = { v: Array(32_000).fill(1) };
    let times = 0;
    const answers = running([], {
      '/api/chats/chat_1': (route) => ((times += 1) === 1 ? route.fulfill({ json: running([])['/api/chats/chat_1'] }) : undefined),
      '/api/chats/chat_1/turn': (route) => route.fulfill({ contentType: 'text/event-stream', body: sse(
        { x_toolrack: { type: 'call_started', id: 'c1', name: 'drop_file', arguments: args, dialect: 'native' } },
        { x_toolrack: { type: 'call_status', id: 'c1', name: 'drop_file', message: '', approval: 'a1', approval_seconds: 60 } },
      ) }),
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await card(page).locator('.allow').waitFor();
    equal(await card(page).locator('.call-body pre').evaluate((node) => node.textContent.length), JSON.stringify(args, null, 2).length, 'characters shown');
    await context.close();
  });

  await check('a16 what is invisible or turns text around is written as an escape, in the card, the inbox and the console', async () => {
    const path = 'notes/\u202ecod.exe\u200b می\u200cخواهم';
    const seen = 'notes/\\u{202e}cod.exe\\u{200b} می\u200cخواهم';
    const args = { path, '\u2066to': 'x' };
    const answers = running([asking('c1', { arguments: args }), asking('c2', { arguments: { list: [path] } })], { '/api/approvals': { approvals: [approval('c1', { arguments: { list: [path] } })] } });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    const shown = async (locator, what) => {
      const text = await locator.innerText();
      if (!text.includes(seen) || /[\u200b\u202e\u2066]/.test(text)) throw new Error(`${what}: ${JSON.stringify(text)}`);
    };
    await shown(page.locator('.call .fields').first(), 'fields');
    equal(await page.locator('.call .fields dt').last().innerText(), '\\u{2066}to', 'a name');
    await shown(page.locator('.call pre').first(), 'JSON');
    await shown(page.locator('.call-brief').first(), 'the head of the card');
    await page.click('#inbox-open');
    await shown(page.locator('#inbox pre'), 'inbox');
    await page.goto(`${page.url().split('#')[0]}admin#approvals`);
    await shown(page.locator('.cards pre'), 'console');
    await context.close();
  });

  await check('b17 what is opened or asked in one chat is not in the next', async () => {
    const answers = { ...ANSWERS, '/api/chats/chat_2': { ...CHAT, id: 'chat_2', title: 'Trains to Lyon', turn: null } };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.locator('.call summary').first().click();
    await page.waitForSelector('.call[open]');
    await page.hover('.question');
    await page.click('.question [title^="Delete this message"]');
    await page.waitForSelector('.question .sure');
    await page.click('.chat-row a:has-text("Trains to Lyon")');
    await page.waitForSelector('.chat-row.shown:has-text("Trains to Lyon")');
    await page.waitForSelector('.answer .text table');
    equal([await page.locator('.call[open]').count(), await page.locator('.question .sure').count()], [0, 0], 'opened and asked');
    await context.close();
  });

  await check('b17 a card says what its call has changed, when to try again, and by what its record is found', async () => {
    const call = asking('call-9', { state: 'failed', approval: null, answer_by: null, error: 'It was called too often', side_effects: ['moved notes/a.md'], retry_at: at(3600) });
    const answers = { ...ANSWERS, '/api/chats/chat_1': { ...CHAT, messages: [CHAT.messages[0], { ...CHAT.messages[1], parts: [call] }] } };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await card(page).locator('summary').click();
    const again = (await card(page).locator('.retry-at').innerText()).replace(/\s/g, ' ');
    equal([await card(page).locator('.side-effects li').allInnerTexts(), again], [['moved notes/a.md'], 'It can be called again from 10:30 on.'], 'what it says');
    equal(await card(page).locator('.call-record a').getAttribute('href'), 'admin#audit?call_id=call-9', 'record');
    await shot(page, 'card-record');
    await context.close();
  });

  await check('b17 the time that is left is the server’s, whatever the clock of the device says', async () => {
    const dated = (answer) => (route) => route.fulfill({ json: answer, headers: { date: NOW.toUTCString() } });
    const kept = running([asking('c1')], { '/api/approvals': { approvals: [approval('c1', { expires_at: at(300) })] } });
    const answers = Object.fromEntries(Object.entries(kept).map(([path, answer]) => [path, typeof answer === 'function' ? answer : dated(answer)]));
    for (const hours of [-1, 1]) {
      const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers, new Date(NOW.getTime() + hours * 3600_000));
      const left = async (place) => equal(await page.locator(`${place} .time-left`).first().innerText(), '5 min left', `${place}, by ${hours} h`);
      await page.locator('.call .time-left').waitFor();
      await left('.call');
      await page.click('#inbox-open');
      await left('#inbox');
      await page.goto(`${page.url().split('#')[0]}admin#approvals`);
      await left('.cards');
      await context.close();
    }
  });

  await check('b17 two calls that wait at once count down each for itself, and show progress and time while they run', async () => {
    const parts = [asking('c1', { answer_by: at(50) }), asking('c2', { arguments: { path: 'b.md' }, answer_by: at(100) }), asking('c3', { name: 'send_mail', approval: null, answer_by: null, message: 'Sending', progress: 0.4 })];
    const { page, context } = await openKept(browser, '#chat_1', WIDE, (one) => one.clock.install({ time: NOW }), running(parts, { '/api/approvals': { approvals: [approval('c1'), approval('c2')] } }), null);
    await page.waitForFunction(() => document.title.startsWith('(2)'));
    await page.clock.pauseAt(new Date(at(30)));
    const left = () => page.locator('.call .time-left').evaluateAll((all) => all.map((one) => Number(/\d+/.exec(one.textContent)[0])));
    const sending = card(page, 'send_mail');
    const time = async () => Number(/^(\d+) s$/.exec(await sending.locator('.call-time').innerText())?.[1]);
    await page.clock.runFor(2000);
    const began = await time();
    equal(await left(), [18, 68], 'seconds left');
    equal([await sending.locator('.call-line').innerText(), await sending.locator('progress').evaluate((bar) => bar.value)], ['Sending', 0.4], 'progress');
    await page.clock.runFor(2000);
    equal([await left(), await time() - began], [[16, 66], 2], 'two seconds later');
    await context.close();
  });

  await check('b17 the time of a call that is joined is counted from when it began', async () => {
    const call = asking('c1', { name: 'send_mail', approval: null, answer_by: null, began_at: at(-90) });
    for (const parts of [[call], []]) {
      // As the chat has it, and as it comes with the stream.
      const answers = running(parts, { '/api/chats/chat_1/turn': (route) => (parts.length > 0 ? undefined : route.fulfill({ contentType: 'text/event-stream', body: sse({ event: 'snapshot', data: { ...CHAT.messages[1], status: 'running', parts: [call] } }) })) });
      // The stream ends at once; what the chat has by then is not sent, so that what came with the stream stays to be seen.
      const chat = answers['/api/chats/chat_1'];
      let loads = 0;
      answers['/api/chats/chat_1'] = (route) => (loads++ > 0 ? undefined : route.fulfill({ json: chat }));
      const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
      equal(await card(page, 'send_mail').locator('.call-time').innerText(), '90 s', 'time');
      await context.close();
    }
  });

  await check('b17 there is a way back from “why not?” and from the change, by key and by button, and Escape in a field ends no turn', async () => {
    const stops = [];
    const answers = running([asking('c1')], { '/api/chats/chat_1/stop': (route) => { stops.push(route.request().url()); return route.fulfill({ json: { stopped: true } }); } });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    for (const [opener, form] of [['.with-word', '.refusal'], ['.change-first', '.change-form']]) {
      for (const way of ['Escape', 'button']) {
        await page.click(opener);
        await page.waitForFunction((place) => document.querySelector(place)?.contains(document.activeElement), form);
        if (way === 'Escape') await page.keyboard.press('Escape');
        else await page.click('.not-so');
        await page.waitForSelector(form, { state: 'detached' });
        equal(await page.evaluate((place) => document.activeElement.matches(place), opener), true, `focus on ${opener} after ${way}`);
      }
    }
    await page.focus('#chats-search');
    await page.keyboard.press('Escape');
    equal(stops, [], 'stopped');
    await page.focus('#question');
    await Promise.all([page.waitForResponse('**/stop'), page.keyboard.press('Escape')]);
    equal(stops.length, 1, 'stopped from the field for messages');
    await context.close();
  });

  await check('b17 the form of a question takes what its schema says: titles, choices, numbers, and what is behind a reference', async () => {
    const schema = {
      type: 'object', required: ['dish', 'guests'], $defs: { Spice: { type: 'string', enum: ['mild', 'hot'], title: 'How hot' } },
      properties: { dish: { type: 'string', title: 'dish' }, guests: { type: 'integer', minimum: 1 }, spice: { $ref: '#/$defs/Spice' }, note: { anyOf: [{ type: 'string' }, { type: 'null' }] }, outside: { type: 'boolean', default: true } },
    };
    let sent = null;
    const answers = running([asking('c1', { approval: null, question: { id: 'q1', message: 'What shall it be?', schema, seconds: 60, waits: true } })], {
      '/api/questions/q1': (route) => { sent = route.request().postDataJSON(); return route.fulfill({ json: {} }); },
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('.ask-form .ask-field');
    equal((await page.locator('.ask-form .ask-field > span').allInnerTexts()).map((text) => text.trim()), ['Dish', 'Guests', 'How hot (optional)', 'Note (optional)', 'Outside'], 'fields');
    await page.fill('.ask-form [name=dish]', 'soup');
    await page.fill('.ask-form [name=guests]', '4');
    await page.selectOption('.ask-form [name=spice]', 'hot');
    await shot(page, 'question-form');
    await Promise.all([page.waitForResponse('**/api/questions/q1'), page.click('.ask-form .allow')]);
    equal(await page.locator('.ask-form .allow').isDisabled(), true, 'cannot be sent twice');
    equal(sent, { answer: { dish: 'soup', guests: 4, spice: 'hot', outside: true } }, 'answer');
    await context.close();
  });

  await byKeyboard(browser);
  await remembered(browser);
}

/** Presses Tab until this has the focus. */
async function tabTo(page, place) {
  for (let times = 0; times < 60; times += 1) {
    if (await page.evaluate((selector) => document.activeElement?.matches(selector), place)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`no ${place} by Tab`);
}

async function byKeyboard(browser) {
  const has = (page, place) => page.waitForFunction((selector) => document.activeElement?.matches(selector), place);

  await check('b17 what waits is answered in its card by keyboard alone, and the focus stays at the card', async () => {
    const { page, context } = await open(browser, WIDE);
    for (const [button, state] of [['.allow', 'ok'], ['.refuse', 'failed']]) {
      await ask(page, ERASE);
      await page.waitForSelector(`.answer:last-child ${button}`);
      await page.focus('.answer:last-child .call > summary');
      await tabTo(page, `.answer:last-child ${button}`);
      await page.keyboard.press('Enter');
      await page.waitForSelector(`.answer:last-child .call[data-name="erase_note"][data-state="${state}"]`);
      await has(page, '.answer:last-child .call > summary');
      await idle(page);
      await has(page, '.answer:last-child .call > summary');
    }
    await context.close();
  });

  await check('b17 what waits is answered in the inbox by keyboard alone, one after the other, and one is back at the message', async () => {
    const sent = [];
    let waiting = ['c1', 'c2', 'c3'].map((id) => approval(id));
    const answered = (id) => (route) => {
      sent.push([id, route.request().postDataJSON().approve]);
      if (id === 'c3') return route.fulfill({ status: 409, json: { error: { message: 'the store is away' } } });
      waiting = waiting.filter((one) => one.id !== `approval-${id}`);
      return route.fulfill({ json: {} });
    };
    const answers = running(['c1', 'c2'].map((id) => asking(id)), {
      '/api/approvals': (route) => route.fulfill({ json: { approvals: waiting } }), ...Object.fromEntries(['c1', 'c2', 'c3'].map((id) => [`/api/approvals/approval-${id}`, answered(id)])),
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('#inbox-open:has-text("3")');
    await tabTo(page, '#inbox-open');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#inbox[open]');
    await tabTo(page, '#inbox li:first-child .allow');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#inbox li:nth-child(3)', { state: 'detached' });
    await has(page, '#inbox li:first-child');
    await tabTo(page, '#inbox li:first-child .refuse');
    await page.keyboard.press('Space');
    await page.waitForSelector('#inbox li:nth-child(2)', { state: 'detached' });
    await has(page, '#inbox li:first-child');
    // What could not be answered is there to be answered again.
    await tabTo(page, '#inbox .allow');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#inbox .ask-fault:has-text("the store is away")');
    await has(page, '#inbox .allow');
    waiting = [];
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await page.waitForSelector('#inbox .empty');
    await has(page, '#inbox .empty');
    equal(sent, [['c1', true], ['c2', false], ['c3', true]], 'answered');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#inbox', { state: 'detached' });
    await has(page, '#question');
    await context.close();
  });
}

async function remembered(browser) {
  const { page, complaints, context } = await open(browser, WIDE);
  const drop = (path) => ask(page, `Drop the file "${path}".`);
  const last = page.locator('.answer:last-child');

  await check('b17 a call is always allowed with these arguments, and with no others, until that is revoked', async () => {
    await drop('always.md');
    await last.locator('.remember summary').click();
    await last.locator('.remember-arguments').click();
    await last.locator('.call[data-name="drop_file"][data-state="ok"]').waitFor();
    await idle(page);
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    await drop('always.md');
    await last.locator('.call[data-name="drop_file"][data-state="ok"]').waitFor();
    await idle(page);
    await drop('never.md');
    await last.locator('.call-ask .refuse').click();
    await idle(page);
    await page.click('#settings-open');
    await page.waitForSelector('.rule[data-scope="arguments"]:has-text("always.md")');
    await page.focus('.rule .revoke');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.rules', { state: 'detached' });
    await page.waitForFunction(() => document.activeElement.matches('.rules-list'));
    await page.keyboard.press('Escape');
  });

  await check('b17 the word with which a call is refused reaches the model', async () => {
    await ask(page, ERASE);
    await last.locator('.with-word').click();
    await last.locator('.refusal input').fill('Aunt Eve still needs it');
    await page.keyboard.press('Enter');
    await idle(page);
    if (!(await answerText(page)).includes('Aunt Eve still needs it')) throw new Error(await answerText(page));
  });

  await check('approvals: no console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

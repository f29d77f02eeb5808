// A chat with calls that the tab keeps, on a desktop and on a phone, and a server with a key.

import { ERASE, QUESTION, URL_UNDER_TEST, WAIT, answerText, ask, check, equal, forgetComplaints, idle, noOverflow, open, shot, withoutChats } from './support.mjs';
import { PICTURE, SOURCES, grounded, heldBefore, parts, repeated, research, silence, withPause } from './streams.mjs';

/** Lets a page get an answer with parts, and their files. */
async function withParts(page) {
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: parts() }));
  await page.route('**/api/files/**', (route) => {
    const name = route.request().url().split('/').at(-1);
    if (name === 'gone.csv') return route.fulfill({ status: 404, json: { error: { message: 'there is no such file' } } });
    const [contentType, body] = name === 'map.png' ? ['image/png', Buffer.from(PICTURE, 'base64')]
      : name === 'wind.wav' ? ['audio/wav', silence()] : ['text/csv', 'a,b\n1,2\n'];
    return route.fulfill({ contentType, body });
  });
}

export async function desktop(browser) {
  const { page, complaints, context } = await open(browser, { viewport: { width: 1280, height: 860 } }, withoutChats);
  await shot(page, 'desktop-empty');

  await check('example questions come from the enabled tools', async () => {
    const count = await page.locator('#examples button').count();
    if (count < 1 || count > 4) throw new Error(`${count} examples`);
  });

  await check('a question makes a call, and its card ends as done', async () => {
    await ask(page, QUESTION);
    await page.waitForSelector('.call[data-name="calculate"][data-state="ok"]');
    await idle(page);
    await shot(page, 'desktop-answer');
  });

  await check('the answer contains the result', async () => {
    const text = await answerText(page);
    if (!text.includes('483')) throw new Error(`no 483 in: ${text}`);
  });

  await check('the finished text is rendered', () => page.waitForSelector('.answer .text:not(.plain) p'));

  await check('the card opens and shows arguments and result', async () => {
    await page.click('.call summary');
    const text = await page.locator('.call .call-body').first().innerText();
    for (const word of ['Arguments', '17 + 4', 'Result', '483']) {
      if (!text.includes(word)) throw new Error(`no ${word} in: ${text}`);
    }
    await shot(page, 'desktop-card');
  });

  await check('a reload keeps the conversation', async () => {
    await page.reload();
    await page.waitForSelector('.call[data-name="calculate"][data-state="ok"]');
    equal(await page.locator('.asked').innerText(), QUESTION, 'question');
  });

  await check('a second question sends roles and contents only', async () => {
    const request = page.waitForRequest((sent) => sent.url().endsWith('/v1/chat/completions'));
    await ask(page, QUESTION);
    const { messages } = (await request).postDataJSON();
    equal(messages.map((message) => message.role), ['user', 'assistant', 'user'], 'roles');
    equal([...new Set(messages.flatMap(Object.keys))].sort(), ['content', 'role'], 'fields');
    await idle(page);
  });

  await check('the tools panel lists, filters and closes', async () => {
    await page.click('#tools-toggle');
    await page.waitForSelector('#tools-list .tool-name:text-is("calculate")');
    await shot(page, 'desktop-tools');
    await page.fill('#tools-filter', 'calculate');
    equal(await page.locator('#tools-list .tool-name').first().innerText(), 'calculate', 'first tool');
    await page.fill('#tools-filter', 'no such tool anywhere');
    equal(await page.locator('#tools-list .tool').count(), 0, 'tools shown');
    await page.click('#tools-close');
    await page.waitForSelector('#tools', { state: 'hidden' });
  });

  await check('Escape stops an answer', async () => {
    await page.route('**/v1/chat/completions', () => {});
    await ask(page, QUESTION);
    await page.waitForSelector('#stop:not([hidden])');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.answer:last-child .notice:text-is("Stopped.")');
    await page.unroute('**/v1/chat/completions');
    await page.click('#new-chat');
  });

  await check('an error of the server is shown, and a second try works', async () => {
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 502, json: { error: { message: 'no model here' } } }));
    await ask(page, QUESTION);
    await page.waitForSelector('.answer:last-child .error p:text-is("no model here")');
    await shot(page, 'desktop-error');
    await forgetComplaints(complaints, '502');
    await page.unroute('**/v1/chat/completions');
    await page.click('.retry:visible');
    await page.waitForSelector('.answer:last-child .call[data-state="ok"]');
    await idle(page);
  });

  await check('a call that cannot be undone is asked about, and refused', async () => {
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask:not([hidden])');
    const shown = await page.locator('.answer:last-child .call').innerText();
    if (!shown.includes('milk')) throw new Error(`the arguments are not shown: ${shown}`);
    await shot(page, 'desktop-approval');
    await page.click('.answer:last-child .call-ask .refuse');
    await page.waitForSelector('.answer:last-child .call[data-name="erase_note"][data-state="failed"]');
    await idle(page);
    await shot(page, 'desktop-refused');
  });

  await check('it is made once it is allowed', async () => {
    await ask(page, ERASE);
    await page.click('.answer:last-child .call-ask .allow');
    await page.waitForSelector('.answer:last-child .call[data-name="erase_note"][data-state="ok"]');
    await idle(page);
    const text = await answerText(page);
    if (!text.includes('The note is gone.')) throw new Error(`no result in: ${text}`);
  });

  await check('b17 the arguments are changed before the call is allowed, and that is what runs, by keyboard alone', async () => {
    await ask(page, ERASE);
    const answer = page.locator('.answer:last-child');
    await answer.locator('.change-first').focus();
    await page.keyboard.press('Enter');
    const title = answer.locator('.change-form [name=title]');
    await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'title');
    equal(await title.inputValue(), 'milk', 'the argument');
    await shot(page, 'desktop-change');
    // What does not fit the schema is refused with what is wrong, and the call goes on waiting.
    await answer.locator('.as-json').click();
    await answer.locator('[name=all]').fill('{"name": "milk"}');
    await answer.locator('.allow-changed').click();
    await answer.locator('.ask-fault:has-text("title")').waitFor();
    await forgetComplaints(complaints, '422');
    await answer.locator('[name=all]').fill('{"title": "cream"');
    await answer.locator('.allow-changed').click();
    await answer.locator('.change-form .ask-fault:has-text("not JSON")').waitFor();
    await answer.locator('[name=all]').fill('{"title": "cream"}');
    await answer.locator('.allow-changed').focus();
    await page.keyboard.press('Enter');
    await answer.locator('.call[data-name="erase_note"][data-state="ok"]').waitFor();
    await idle(page);
    if (await answer.locator('.call-body').count() === 0) await answer.locator('.call summary').click();
    const shown = await answer.locator('.call-body').innerText();
    for (const word of ['as a person has changed them', 'cream', 'Asked for by the model', 'milk']) {
      if (!shown.includes(word)) throw new Error(`no ${word} in: ${shown}`);
    }
    await shot(page, 'desktop-changed');
  });

  await check('the word of a tool to the user stands under its call, as text with links', async () => {
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: research() }));
    await ask(page, 'Research boiling');
    const said = page.locator('.answer:last-child .call-said');
    await said.waitFor();
    await idle(page);
    await shot(page, 'desktop-said');
    equal(await said.innerText(), SOURCES, 'text');
    equal(await said.locator('a').evaluateAll((links) => links.map((link) => [link.href, link.target])), [
      ['https://one.example/boil_(water)', '_blank'], ['http://two.example/?a=1&b=2', '_blank'],
    ], 'links');
    await page.unroute('**/v1/chat/completions');
    await page.reload();
    equal(await said.innerText(), SOURCES, 'text after a reload');
  });

  await check('parts of a result are shown as what they are, and files are saved', async () => {
    await withParts(page);
    await ask(page, 'How was the weather?');
    const shown = page.locator('.answer:last-child .call-parts');
    const picture = shown.locator('img');
    await picture.waitFor();
    await idle(page);
    equal(await picture.evaluate(async (image) => { await image.decode(); return [image.naturalWidth, image.alt]; }), [160, 'map.png'], 'picture');
    await page.waitForFunction(() => document.querySelector('.answer:last-child audio')?.duration === 1);
    equal(await shown.locator('.text').first().innerText(), 'Reading the sensors.', 'streamed text');
    const cells = (row) => shown.locator('tbody tr').nth(row).locator('td').allInnerTexts();
    equal([await cells(1), await shown.locator('tbody tr').count()], [['2026-11-2 <b>bold</b>', '0.5', ''], 30], 'table');
    if (!(await shown.innerText()).includes('200 more rows in the file')) throw new Error('the rest of the table is not named');
    equal(await shown.locator('strong').innerText(), 'Storm', 'Markdown');
    equal(await shown.evaluate((node) => node.querySelectorAll('b, script, [onerror]').length), 0, 'hostile elements');
    const [download] = await Promise.all([page.waitForEvent('download'), shown.locator('.part-file', { hasText: 'report.csv' }).click()]);
    equal(download.suggestedFilename(), 'report.csv', 'file');
    await shot(page, 'desktop-parts');
    await page.locator('.answer:last-child').evaluate((node) => node.scrollIntoView());
    await shot(page, 'desktop-parts-top');
    await page.reload();
    await picture.waitFor();
    equal(await shown.locator('tbody tr').count(), 30, 'table after a reload');
  });

  await check('b17 parts of a result are shown as they come, while the call runs', async () => {
    await heldBefore(page, parts(), '"type":"call_finished"');
    await ask(page, 'How is the weather?');
    const last = page.locator('.answer:last-child');
    await last.locator('.call[data-state="running"]').waitFor();
    await last.locator('.call-parts .text:text-is("Reading the sensors.")').waitFor();
    equal([await last.locator('.call-parts table').count(), await last.locator('.call').getAttribute('data-state')], [0, 'running'], 'so far');
    await page.evaluate(() => window.letEnd());
    await last.locator('.call-parts table').waitFor();
    await idle(page);
    await page.waitForSelector('.answer:last-child audio');
  });

  await check('an answer of parts alone is sent back with the next question', async () => {
    const request = page.waitForRequest('**/v1/chat/completions');
    await ask(page, 'And tomorrow?');
    const { messages } = (await request).postDataJSON();
    const said = messages.at(-2);
    equal([said.role, said.content.startsWith('Reading the sensors.![map.png]')], ['assistant', true], 'the answer before');
    await idle(page);
    // Its files are asked for as well.
    await page.waitForSelector('.answer:last-child audio');
    await page.waitForSelector('.answer:last-child .call-parts img');
    await page.unroute('**/v1/chat/completions');
    await page.unroute('**/api/files/**');
  });

  await check('b17 equal calls are one card, thinking is folded with its time, and an error says what to do', async () => {
    await withPause(page, repeated(), 1500);
    await ask(page, 'Again and again');
    await idle(page);
    const answer = page.locator('.answer:last-child');
    equal(await answer.locator('.call').evaluateAll((cards) => cards.map((card) => [card.dataset.name, card.querySelector('.count')?.textContent ?? ''])),
      [['look', '× 12'], ['look', ''], ['look', ''], ['look', '']], 'cards');
    equal((await answer.locator('.call-time').allInnerTexts()).filter((time) => /\b0 ms/.test(time)), [], 'calls that took no time');
    const [isOpen, title] = await answer.locator('.thinking').evaluate((node) => [node.open, node.querySelector('summary').innerText]);
    const [, seconds] = /^Thought for (\d+\.\d) s$/.exec(title) ?? [];
    const paused = await page.evaluate(() => window.paused / 1000);
    if (isOpen || !(Math.abs(seconds - paused) < 0.5)) throw new Error(`thinking is open: ${isOpen}, “${title}” of ${paused} s`);
    await answer.locator('.thinking summary').click();
    await answer.locator('.thinking-text:has-text("Let me see")').waitFor();
    equal(await answer.locator('[data-state="failed"] .call-line').innerText(), 'There is no such place; name one from the list', 'error');
    equal(await answer.locator('.notice').innerText(), 'The answer was cut off at the model’s length limit.', 'end');
  });

  await check('b17 what an answer takes from documents has numbered notes that open the passage, by keyboard', async () => {
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: grounded() }));
    await ask(page, 'How hot is tea?');
    await idle(page);
    const answer = page.locator('.answer:last-child');
    await answer.locator('.note').first().waitFor();
    equal(await answer.locator('.note').allInnerTexts(), ['[1]', '[2]', '[3]', '[3]'], 'notes');
    if (!(await answer.locator('.text').last().innerText()).includes('my-prices.csv, [1] and')) throw new Error('a number that stands for nothing is changed');
    await shot(page, 'desktop-notes');
    await answer.locator('.note').nth(1).focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('#passage:has-text("Black tea is steeped at 95 degrees.")');
    equal(await page.locator('#passage h2').innerText(), '[2] tea.md', 'title');
    await shot(page, 'desktop-passage');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#passage', { state: 'detached' });
    equal(await page.evaluate(() => document.activeElement?.textContent), '[2]', 'focus');
    await answer.locator('.sources summary').click();
    equal(await answer.locator('.source').count(), 3, 'sources');
    await answer.locator('.source').first().click();
    await page.waitForSelector('#passage:has-text("<b onclick")');
    await page.keyboard.press('Escape');
    await page.unroute('**/v1/chat/completions');
  });

  await check('a new chat is empty', async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome:not([hidden])');
    equal(await page.locator('#log > *').count(), 0, 'messages left');
  });

  await check('no console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

export async function phone(browser) {
  const { page, complaints, context } = await open(browser,
    { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' }, withoutChats);
  await shot(page, 'phone-empty');
  await check('phone: the empty page does not scroll sideways', () => noOverflow(page));

  await check('phone: an answer with an open card does not scroll sideways', async () => {
    await ask(page, QUESTION);
    await page.waitForSelector('.call[data-state="ok"]');
    await idle(page);
    await page.click('.call summary');
    await shot(page, 'phone-answer');
    await noOverflow(page);
  });

  await check('phone: a question about a call does not scroll sideways', async () => {
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask:not([hidden])');
    await shot(page, 'phone-approval');
    await noOverflow(page);
    await page.click('.answer:last-child .call-ask .refuse');
    await idle(page);
  });

  await check('phone: a long word of a tool does not scroll sideways', async () => {
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: research() }));
    await ask(page, 'Research boiling');
    await page.waitForSelector('.answer:last-child .call-said');
    await idle(page);
    await shot(page, 'phone-said');
    await noOverflow(page);
    await page.unroute('**/v1/chat/completions');
  });

  await check('phone: parts of a result do not scroll sideways', async () => {
    await withParts(page);
    await ask(page, 'How was the weather?');
    await page.waitForSelector('.answer:last-child .call-parts img');
    await idle(page);
    await page.waitForSelector('.answer:last-child audio');
    await shot(page, 'phone-parts');
    await noOverflow(page);
    await page.unroute('**/v1/chat/completions');
    await page.unroute('**/api/files/**');
  });

  await check('phone: the drawer opens, fits, and Escape closes it', async () => {
    await page.click('#tools-toggle');
    await page.waitForSelector('#tools-list .tool');
    await shot(page, 'phone-tools');
    await noOverflow(page);
    await page.keyboard.press('Escape');
    await page.waitForSelector('#tools', { state: 'hidden' });
  });

  await check('phone: no console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

/** The browser's own routes stand for a server with a key, in front of the one without. */
export async function keyed(browser) {
  const context = await browser.newContext({ locale: 'en-GB', serviceWorkers: 'block' });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  await page.route(/\/(v1|api)\//, (route) => (route.request().headers().authorization === 'Bearer secret'
    ? route.continue() : route.fulfill({ status: 401, json: { error: { message: 'this server asks for a key' } } })));
  await withoutChats(page);
  await page.route('**/healthz', (route) => route.fulfill({ json: { status: 'ok', upstream: 'openai', model: 'configured', tools: 1 } }));
  await page.route('**/v1/models', (route) => (route.request().headers().authorization === 'Bearer secret'
    ? route.fulfill({ json: { data: [{ id: 'first' }, { id: 'configured' }] } }) : route.fallback()));
  await page.goto(URL_UNDER_TEST);

  await check('a key is asked for until it is the right one', async () => {
    await page.waitForSelector('#key-dialog');
    // Of what an operator sets nothing is said to who only has a key.
    if (/TOOLRACK|api.?key/i.test(await page.innerText('#key-dialog'))) throw new Error(await page.innerText('#key-dialog'));
    for (const key of ['wrong', 'secret']) {
      await page.fill('#key-dialog input', key);
      if (key === 'secret') await shot(page, 'desktop-key');
      await page.press('#key-dialog input', 'Enter');
      if (key === 'wrong') await page.waitForSelector('#key-dialog p:has-text("does not take")');
    }
    await page.waitForSelector('#examples button');
    equal(await page.locator('#key-dialog').count(), 0, 'dialogs left');
  });

  await check('the key is kept and goes with every request', async () => {
    await page.reload();
    await page.waitForSelector('#examples button');
    await ask(page, QUESTION);
    await page.waitForSelector('.call[data-name="calculate"][data-state="ok"]');
    await page.waitForSelector('.answer .text:not(.plain) p');
  });

  await check('the configured model is chosen, whatever is listed first', async () => {
    equal(await page.inputValue('#model'), 'configured', 'model');
  });

  await check('b17 with the key goes what was said and written with it', async () => {
    await idle(page);
    await page.fill('#question', 'Only for me');
    const kept = () => page.evaluate(() => [...Object.values(localStorage), ...Object.values(sessionStorage)].filter((text) => /Only for me|23\?/.test(text)).length);
    equal(await kept(), 2, 'kept before');
    await page.click('#settings-open');
    await page.click('#settings button:has-text("Forget the key")');
    await page.waitForSelector('#key-dialog');
    equal(await kept(), 0, 'kept after');
  });
  await context.close();
}

// The chat page in a real browser, against a running server with the demo model.
//
//   TOOLRACK_URL   address of the server, default http://127.0.0.1:7331/
//   CHROMIUM       the browser, default /usr/bin/chromium
//   SHOTS          folder for screenshots; none are taken without it
//
// playwright-core comes from `npm install` here, from NODE_PATH, or from the
// node_modules of the working directory.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const URL_UNDER_TEST = new URL(process.env.TOOLRACK_URL ?? 'http://127.0.0.1:7331/').href;
const WAIT = 20_000;
const QUESTION = 'What is (17 + 4) * 23?';
const ERASE = 'Erase the note "milk".';

const SOURCES = `Sources for "why water boils":
1. Boiling <b onclick="alert(1)">water</b> (https://one.example/boil_(water)).
2. javascript:alert(1) http://two.example/?a=1&b=2, ${'long'.repeat(30)}`;

const { chromium } = playwright();
let passed = 0;
let failed = 0;

function playwright() {
  for (const from of [import.meta.url, join(process.cwd(), 'any.js')]) {
    try {
      return createRequire(from)('playwright-core');
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  console.error('playwright-core is missing: run `npm install` beside this file');
  process.exit(2);
}

async function check(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${error.message.replaceAll('\n', '\n        ')}`);
  }
}

function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}

/** A page that notes everything the browser complains about. */
async function open(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.setDefaultTimeout(WAIT);
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => { if (!sameOrigin(request.url())) complaints.push(`request to ${request.url()}`); });
  await page.exposeFunction('reportViolation', (text) => complaints.push(text));
  await page.addInitScript(() => addEventListener('securitypolicyviolation',
    (event) => window.reportViolation(`CSP ${event.violatedDirective}: ${event.blockedURI}`)));
  await page.goto(URL_UNDER_TEST);
  await page.waitForSelector('#examples button');
  return { page, complaints, context };
}

function sameOrigin(address) {
  return address.startsWith('data:') || new URL(address).origin === new URL(URL_UNDER_TEST).origin;
}

async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), animations: 'disabled' });
}

/** What the server sends of a call with a word to the user. */
function research() {
  const call = { id: 'call-1', name: 'research' };
  const chunks = [
    { x_toolrack: { type: 'call_started', ...call, arguments: { query: 'why water boils' }, dialect: 'native' } },
    { x_toolrack: { type: 'call_finished', ...call, success: true, result: '1. Boiling water', message: SOURCES, duration_ms: 812 } },
    { choices: [{ delta: { content: 'Water boils when its vapour pressure reaches that of the air.' } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

async function ask(page, text) {
  await page.fill('#question', text);
  await page.press('#question', 'Enter');
}

const idle = (page) => page.waitForSelector('#stop', { state: 'hidden' });
const answerText = (page) => page.locator('.answer:last-child .text').allInnerTexts().then((texts) => texts.join('\n'));

async function noOverflow(page) {
  const [whole, log] = await page.evaluate(() => {
    const scroller = document.getElementById('scroller');
    return [document.documentElement.scrollWidth - 360, scroller.scrollWidth - scroller.clientWidth];
  });
  equal([Math.max(whole, 0), log], [0, 0], 'pixels too wide (page, conversation)');
}

async function desktop(browser) {
  const { page, complaints, context } = await open(browser, { viewport: { width: 1280, height: 860 } });
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
    const before = complaints.length;
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 502, json: { error: { message: 'no model here' } } }));
    await ask(page, QUESTION);
    await page.waitForSelector('.answer:last-child .error p:text-is("no model here")');
    await shot(page, 'desktop-error');
    // The browser reports the 502 that this check has ordered.
    complaints.splice(before);
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

  await check('a new chat is empty', async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome:not([hidden])');
    equal(await page.locator('#log > *').count(), 0, 'messages left');
  });

  await check('no console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

async function phone(browser) {
  const { page, complaints, context } = await open(browser,
    { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' });
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
async function keyed(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  await page.route(/\/(v1|api)\//, (route) => (route.request().headers().authorization === 'Bearer secret'
    ? route.continue() : route.fulfill({ status: 401, json: { error: { message: 'this server asks for a key' } } })));
  await page.route('**/healthz', (route) => route.fulfill({ json: { status: 'ok', upstream: 'openai', model: 'configured', tools: 1 } }));
  await page.route('**/v1/models', (route) => (route.request().headers().authorization === 'Bearer secret'
    ? route.fulfill({ json: { data: [{ id: 'first' }, { id: 'configured' }] } }) : route.fallback()));
  await page.goto(URL_UNDER_TEST);

  await check('a key is asked for until it is the right one', async () => {
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
  await context.close();
}

/** Fires an event of a drag over the page; `files` are name and text. */
function drag(page, type, files) {
  return page.evaluate(([name, dragged]) => {
    const dataTransfer = new DataTransfer();
    for (const [file, text] of dragged) dataTransfer.items.add(new File([text], file, { lastModified: Date.UTC(2026, 0, 31) }));
    document.getElementById('question').dispatchEvent(new DragEvent(name, { dataTransfer, bubbles: true, cancelable: true }));
  }, [type, files]);
}

/** Drops a real file or folder, as a person does. */
async function dropFromDisk(page, path) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop']) await session.send('Input.dispatchDragEvent', { type, x: 200, y: 200, data });
  await session.detach();
}

/** Waits for the summary of what was added. */
const added = (page, summary) => page.waitForSelector(`#documents-status:text-is("${summary}")`);

const transfers = (page) => page.locator('.transfer').evaluateAll((rows) => rows.map((row) => [row.querySelector('.transfer-name').textContent, row.querySelector('.transfer-state').textContent]));
const listed = (page, folder) => page.locator(`#documents-list section[aria-label="${folder}"] .document-name`).allInnerTexts();

const NOTES = [['oolong.md', '# Oolong\n\nOolong tea is steeped at 88 degrees.\n'], ['prices.csv', 'drink,price\noolong,4\nsencha,3\n']];

async function documents(browser) {
  const { page, complaints, context } = await open(browser, { viewport: { width: 1280, height: 860 } });
  // From now on the test is asked for files, and not a person.
  page.on('filechooser', () => {});
  const folder = mkdtempSync(join(tmpdir(), 'toolrack-page-'));

  await check('files over the page are shown where to go, and text is not', async () => {
    await drag(page, 'dragover', NOTES);
    await page.waitForSelector('#drop:popover-open');
    await shot(page, 'documents-drag');
    await drag(page, 'dragleave', NOTES);
    await page.waitForSelector('#drop', { state: 'hidden' });
    await drag(page, 'dragover', []);
    equal(await page.locator('#drop:popover-open').count(), 0, 'overlays for what is no file');
  });

  await check('dropped files are added, and one that cannot be read is refused in words', async () => {
    await drag(page, 'dragover', NOTES);
    await drag(page, 'drop', [...NOTES, ['cat.png', 'no text']]);
    await added(page, '2 added, 1 not added.');
    equal(await page.locator('#drop:popover-open').count(), 0, 'overlays left');
    const [oolong, prices, cat] = await transfers(page);
    equal([oolong, prices], [['oolong.md', 'Added, 1 passage'], ['prices.csv', 'Added, 1 passage']], 'added');
    if (!cat[1].includes('cannot be read') || !cat[1].includes('.pdf')) throw new Error(`no reason in: ${cat}`);
    equal(await listed(page, 'uploads/local'), ['oolong.md', 'prices.csv'], 'documents');
    await shot(page, 'documents-added');
  });

  await check('what is there as it is, and a file that the server cannot read, are reported', async () => {
    await drag(page, 'drop', [NOTES[0], ['broken.pdf', 'no pdf'], ['prices.csv', 'drink,price\noolong,5\n']]);
    await added(page, '1 updated, 1 unchanged, 1 not added.');
    equal((await transfers(page))[1], ['broken.pdf', 'The file cannot be read: it is no PDF'], 'broken file');
  });

  await check('a folder that is dropped is added with what is in it', async () => {
    for (const name of ['notes', 'notes/deep', 'notes/.git']) mkdirSync(join(folder, name));
    for (const [name, text] of [['notes/sencha.md', '# Sencha\n\nSencha is green.\n'], ['notes/deep/matcha.txt', 'Matcha is ground.'], ['notes/leaf.jpg', ''], ['notes/.git/config.md', '# Hidden']]) writeFileSync(join(folder, name), text);
    await dropFromDisk(page, join(folder, 'notes'));
    await added(page, '2 added, 2 hidden files or of other kinds left out.');
    equal(await listed(page, 'uploads/local/notes'), ['sencha.md'], 'documents in it');
    equal(await listed(page, 'uploads/local/notes/deep'), ['matcha.txt'], 'documents below it');
    await shot(page, 'documents-list');
  });

  await check('the tools are shown as they are by now, without a reload', async () => {
    await page.keyboard.press('Escape');
    await page.waitForSelector('#documents', { state: 'hidden' });
    await page.click('#tools-toggle');
    await page.waitForSelector('.tool:not(.off) .tool-name:text-is("retrieve_documents")');
    await page.click('#tools-close');
  });

  await check('a question finds a passage of a file that was dropped', async () => {
    await ask(page, 'Retrieve documents about how hot oolong is steeped');
    await page.waitForSelector('.answer:last-child .call[data-name="retrieve_documents"][data-state="ok"]');
    await idle(page);
    const text = await answerText(page);
    for (const words of ['88 degrees', 'uploads/local/oolong.md']) {
      if (!text.includes(words)) throw new Error(`no ${words} in: ${text}`);
    }
    await shot(page, 'documents-answer');
  });

  await check('with the keyboard alone documents are reached, added and removed', async () => {
    await page.focus('#tools-toggle');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#tools-list .tool');
    await tabTo(page, '#documents-open');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#documents[open] .document');
    await tabTo(page, '#documents-files');
    const picker = page.waitForEvent('filechooser');
    await page.keyboard.press('Enter');
    await (await picker).setFiles({ name: 'assam.md', mimeType: 'text/markdown', buffer: Buffer.from('# Assam\n\nStrong.\n') });
    await added(page, '1 added.');
    await tabTo(page, '[aria-label="Remove assam.md"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.removal:has-text("Remove assam.md?")');
    await shot(page, 'documents-remove');
    equal(await page.evaluate(() => document.activeElement.textContent), 'Keep', 'focus');
    await page.keyboard.press('Enter');
    equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove assam.md', 'focus after that');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#documents-status:text-is("Removed assam.md.")');
    await page.waitForSelector('.document-name:text-is("assam.md")', { state: 'detached' });
    equal(await page.evaluate(() => document.activeElement.id), 'documents-list', 'focus at the end');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#documents', { state: 'hidden' });
    equal(await page.evaluate(() => document.activeElement.id), 'documents-open', 'focus on the page');
  });

  await check('a folder is chosen, and removed with all that is in it', async () => {
    await page.click('#documents-open');
    const picker = page.waitForEvent('filechooser');
    await page.click('#documents-folder');
    await (await picker).setFiles(join(folder, 'notes'));
    await added(page, '2 unchanged, 2 hidden files or of other kinds left out.');
    await page.click('[aria-label="Remove all in uploads/local"]');
    await page.click('.removal .danger');
    await page.waitForSelector('#documents-list section[aria-label^="uploads/local"]', { state: 'detached' });
    await page.click('#documents-close');
  });

  await check('what is sent can be stopped', async () => {
    await page.route('**/api/documents?name=**', () => {});
    await drag(page, 'drop', NOTES);
    await page.waitForSelector('.transfer:first-child .spinner');
    await shot(page, 'documents-sending');
    await page.click('#documents-stop');
    await added(page, '2 not added.');
    equal((await transfers(page)).map(([, state]) => state), ['Stopped', 'Stopped'], 'states');
    await page.unroute('**/api/documents?name=**');
    await page.click('#documents-close');
  });

  await check('users who may not add or see documents get the reason', async () => {
    const before = complaints.length;
    await page.route('**/api/documents', (route) => route.fulfill({ json: { documents: [], total: 0, may_add: false, extensions: ['md'], max_bytes: 10 } }));
    await drag(page, 'drop', NOTES);
    await page.waitForSelector('#documents-status:text-is("You may not add documents here.")');
    await page.waitForSelector('#documents-add', { state: 'hidden' });
    await page.click('#documents-close');
    await page.unroute('**/api/documents');
    await page.route('**/api/documents', (route) => route.fulfill({ status: 403, json: { error: { message: 'documents are for the level user' } } }));
    await drag(page, 'drop', NOTES);
    await page.waitForSelector('#documents-list [role=alert]:text-is("documents are for the level user")');
    equal(await page.locator('.transfer').count(), 0, 'files sent');
    await page.click('#documents-close');
    await page.unroute('**/api/documents');
    // The browser reports the 403 that this check has ordered.
    complaints.splice(before);
  });

  await check('a file that is too large is not sent', async () => {
    await page.route('**/api/documents', (route) => route.fulfill({ json: { documents: [], total: 0, may_add: true, extensions: ['md'], max_bytes: 2 ** 20 } }));
    await drag(page, 'drop', [['large.md', 'x'.repeat(2 ** 20 + 1)]]);
    await added(page, '1 not added.');
    equal((await transfers(page))[0], ['large.md', 'It is larger than 1 MiB; split it'], 'reported');
    await page.unroute('**/api/documents');
    await page.click('#documents-close');
  });

  // The browser reports the 422 of the broken file.
  const unexpected = complaints.filter((complaint) => !complaint.includes('422'));
  await check('documents: no other console error, CSP violation or foreign request', () => equal(unexpected, [], 'complaints'));
  rmSync(folder, { recursive: true });
  await context.close();
}

/** Goes from one element to the next as a person without a mouse does. */
async function tabTo(page, selector) {
  for (let steps = 0; steps < 60; steps += 1) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${selector} is not reached by the keyboard`);
}

/** The dialog on a phone, and in both schemes. */
async function documentsOnPhone(browser) {
  const { page, complaints, context } = await open(browser,
    { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' });
  await check('phone: documents with long names do not scroll sideways', async () => {
    await page.click('#tools-toggle');
    await shot(page, 'phone-documents-open');
    await page.click('#documents-open');
    await drag(page, 'drop', [...NOTES, [`${'long'.repeat(30)}.md`, '# A title\n\nText.'], ['cat.png', '']]);
    await added(page, '3 added, 1 not added.');
    await shot(page, 'phone-documents');
    await noOverflow(page);
    const [wide, dialog] = await page.evaluate(() => {
      const body = document.querySelector('.documents-body');
      return [body.scrollWidth - body.clientWidth, document.getElementById('documents').getBoundingClientRect().right];
    });
    equal([wide, dialog <= 360], [0, true], 'pixels too wide, and whether the dialog fits');
    await page.click('[aria-label="Remove oolong.md"]');
    await shot(page, 'phone-documents-remove');
    await drag(page, 'dragover', NOTES);
    await shot(page, 'phone-documents-drag');
    await drag(page, 'dragleave', NOTES);
    await page.click('[aria-label="Remove all in uploads/local"]');
    await page.click('.folder-head .danger');
    await page.waitForSelector('#documents-list section[aria-label^="uploads/local"]', { state: 'detached' });
  });
  await check('phone: documents without console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  await desktop(browser);
  await phone(browser);
  await keyed(browser);
  await documents(browser);
  await documentsOnPhone(browser);
} catch (error) {
  failed += 1;
  console.log(`FAILED  ${error.message}`);
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

// The console of admins: each section, in front of a server of its own; how it looks; who may not.

import { readFileSync } from 'node:fs';

import { faults, WIDTHS, windowOf } from './looks.mjs';
import { ERASE, QUESTION, WAIT, check, equal, forgetComplaints, shot } from './support.mjs';

export const ADMIN = new URL(process.env.TOOLRACK_ADMIN_URL ?? 'http://127.0.0.1:7331/').href;
const OTHERS = process.env.TOOLRACK_MAIL_URL ? new URL(process.env.TOOLRACK_MAIL_URL).href : '';
const MODEL = process.env.TOOLRACK_MODEL_URL ? new URL(process.env.TOOLRACK_MODEL_URL).href : '';
export const SECTIONS = ['overview', 'models', 'tools', 'people', 'personas', 'turns', 'approvals', 'audit', 'traces', 'servers', 'documents', 'schedule', 'webhooks', 'settings'];

/** The console with all that the browser complains about. */
export async function enter(browser, options = {}, section = '', url = ADMIN) {
  const context = await browser.newContext({ locale: 'en-GB', serviceWorkers: 'block', ...options });
  const page = await context.newPage();
  const complaints = [];
  page.setDefaultTimeout(WAIT);
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`); });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${url}admin${section && `#${section}`}`);
  await page.waitForSelector('#section:not([aria-busy]) h1');
  return { page, complaints, context };
}

export const go = async (page, section) => {
  await page.click(`#sections a[href="#${section}"]`);
  await page.waitForSelector(`#section[data-section="${section}"]`);
};
export const row = (page, text) => page.locator('.rows tbody tr', { hasText: text });

export async function consoleOfAdmins(browser) {
  const { page, complaints, context } = await enter(browser, { viewport: { width: 1280, height: 860 }, acceptDownloads: true });

  await check('u29 an admin sees whether all is well, and goes from section to section by the keyboard', async () => {
    await page.waitForSelector('#fact-models .good');
    equal((await page.locator('#console-user').innerText()).includes('(owner)'), true, 'who is signed in');
    // The first one is open.
    for (const section of SECTIONS.slice(1)) {
      await page.focus(`#sections a[href="#${section}"]`);
      await page.keyboard.press('Enter');
      await page.waitForSelector(`#section[data-section="${section}"]`);
      // It takes the focus once it is drawn; before that it would take the next key.
      await page.waitForFunction(() => document.activeElement.id === 'section');
      equal(await page.locator('#section .fault').count(), 0, `faults in ${section}`);
    }
  });

  await check('u29 a tool is tried by the form of its schema, and its call is counted', async () => {
    await go(page, 'tools');
    await page.fill('#tool-filter', 'erase_note');
    await page.click('button.link:has-text("erase_note")');
    await page.fill('#tool [name="title"]', 'milk');
    await page.click('#try button[type="submit"]');
    // It cannot be undone, so a person is asked here too.
    await page.click('#tool .allow');
    await page.waitForSelector('#reply:has-text("The note is gone.")');
    await page.waitForSelector('#tool .rows:has-text("approved")');
    await shot(page, 'console-tool');
    await page.keyboard.press('Escape');
    await page.reload();
    await page.waitForSelector('.rows');
    await page.fill('#tool-filter', 'erase_note');
    await page.waitForFunction(() => document.querySelector('.rows td[data-title="Calls"]')?.textContent === '1');
  });

  await check('u29 a tool is switched off and on, at once', async () => {
    await page.click('input[role="switch"]');
    await page.waitForSelector('.rows tr.off:has-text("erase_note")');
    const listed = () => page.evaluate(() => fetch('api/tools').then((answer) => answer.json()).then(({ tools }) => tools.find(({ name }) => name === 'erase_note').enabled));
    equal(await listed(), false, 'enabled');
    await page.click('input[role="switch"]');
    await page.waitForSelector('.rows tr:not(.off):has-text("erase_note")');
    equal(await listed(), true, 'enabled again');
  });

  await check('u29 a limit is set and taken back, and holds for the next call', async () => {
    await page.click('button.link:has-text("erase_note")');
    equal(await page.locator('#limits [name="daily_limit"]').inputValue(), '', 'a limit that nobody has set');
    await page.fill('#limits [name="daily_limit"]', '1');
    await page.focus('#limits button[type="submit"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#limits small:has-text("set by an admin; the tool has no limit")');
    await page.fill('#tool [name="title"]', 'milk');
    await page.click('#try button[type="submit"]');
    await page.click('#tool .allow');
    await page.waitForSelector('#reply:has-text("The note is gone.")');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .fault:has-text("once a day")');
    await shot(page, 'console-limits');
    await forgetComplaints(complaints, '429');
    await page.fill('#limits [name="daily_limit"]', '');
    await page.click('#limits button[type="submit"]');
    await page.waitForFunction(() => [...document.querySelectorAll('#limits label small')].every((about) => about.textContent === 'as the tool has it'));
    await page.keyboard.press('Escape');
    await page.waitForSelector('#tool', { state: 'detached' });
  });

  await check('u29 users, levels, personas and keys are made, changed and removed', async () => {
    await go(page, 'personas');
    await page.fill('#add-persona input', 'reading');
    await page.press('#add-persona input', 'Enter');
    await row(page, 'reading').locator('label', { hasText: 'research' }).locator('input').click();
    await page.waitForFunction(() => fetch('api/personas').then((answer) => answer.json()).then(({ personas }) => personas[0]?.allowed_modules.includes('research')));
    await go(page, 'people');
    await page.fill('#add-user input', 'ada');
    await page.press('#add-user input', 'Enter');
    await row(page, 'ada').waitFor();
    await row(page, 'ada').getByRole('combobox').selectOption('guest');
    await page.waitForFunction(() => fetch('api/users').then((answer) => answer.json()).then(({ users }) => users[0]?.level === 'guest'));
    await row(page, 'ada').locator('summary').click();
    await row(page, 'ada').getByRole('checkbox').click();
    await page.waitForFunction(() => fetch('api/users').then((answer) => answer.json()).then(({ users }) => users[0]?.personas[0] === 'reading'));
    await page.click('button[title="Make a key for ada"]');
    await page.waitForSelector('#new-key code');
    if (!/^trk_/.test(await page.locator('#new-key code').innerText())) throw new Error('no key');
    await page.click('#new-key .bar button');
    await page.selectOption('#key-days', '30');
    await page.fill('#key-name', 'phone');
    await page.click('button[title="Make a key for ada"]');
    await page.waitForSelector('#new-key code');
    await page.waitForSelector('table[aria-label="Keys"] td:has-text("valid until")');
    await page.locator('table[aria-label="Keys"] tr', { hasText: 'valid until' }).filter({ hasText: 'phone' }).filter({ hasText: 'never' }).getByRole('button').click();
    await page.click('.sure-yes');
    await page.waitForSelector('table[aria-label="Keys"] tr.off');
    await page.click('#new-key .bar button');
    await shot(page, 'console-people-filled');
  });

  await check('u29 a key is revoked and a user removed after a second question', async () => {
    await page.locator('table[aria-label="Keys"] button').click();
    equal(await page.evaluate(() => document.activeElement.textContent), 'Cancel', 'focus');
    await page.keyboard.press('Escape');
    await page.locator('table[aria-label="Keys"] button').click();
    await page.click('.sure-yes');
    await page.waitForFunction(() => document.querySelectorAll('table[aria-label="Keys"] tr.off').length === 2);
    await page.click('button[title="Remove ada"]');
    await page.click('.sure-yes');
    await page.locator('table[aria-label="Users"]').waitFor({ state: 'detached' });
  });

  await check('u29 what is kept of a person is erased after a second question', async () => {
    await page.fill('#add-user input', 'max');
    await page.press('#add-user input', 'Enter');
    await page.locator('table[aria-label="Users"] tr', { hasText: 'max' }).waitFor();
    equal(await page.locator('#erase-person button').isDisabled(), true, 'nobody is named');
    await page.fill('#erase-person input', 'max');
    await page.click('#erase-person button');
    await shot(page, 'console-erase');
    await page.click('#erase-person .sure-yes');
    await page.waitForSelector('#erased:has-text("0 keys, 0 sessions, 0 chats")');
    await page.locator('table[aria-label="Users"]').waitFor({ state: 'detached' });
    const { records } = await page.evaluate(() => fetch('api/audit?tool=toolrack%20user%20erase').then((reply) => reply.json()));
    equal(records.map(({ record }) => [record.phase, record.arguments.user]), [['outcome', 'max'], ['intent', 'max']], 'records');
  });

  await check('u29 a tool is registered by its spec, listed, and removed', async () => {
    await go(page, 'tools');
    await page.click('#register summary');
    await page.fill('#register textarea', '{"tool_name": "sail_times"');
    await page.click('#register button[type="submit"]');
    await page.waitForSelector('#register .fault:has-text("is not JSON")');
    await page.fill('#register textarea', JSON.stringify({ tool_name: 'sail_times', version: '1.0.0', description: 'When the ferry sails.', input_schema: { type: 'object' }, output_schema: {} }));
    await shot(page, 'console-register');
    await page.click('#register button[type="submit"]');
    await row(page, 'sail_times').waitFor();
    equal(await page.locator('#register textarea').inputValue(), '', 'the spec is taken');
    await row(page, 'sail_times').locator('button.link').click();
    await page.click('#tool button[title="Remove sail_times"]');
    await page.click('#tool .sure-yes');
    await page.waitForSelector('#tool', { state: 'detached' });
    await row(page, 'sail_times').waitFor({ state: 'detached' });
    // The others cannot be removed.
    await page.fill('#tool-filter', 'erase_note');
    await page.click('button.link:has-text("erase_note")');
    await page.waitForSelector('#tool[open]');
    equal(await page.locator('#tool button[title^="Remove"]').count(), 0, 'ways to remove a tool of the configuration');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#tool', { state: 'detached' });
  });

  await check('u29 a backup of the running server is saved', async () => {
    await go(page, 'overview');
    const [saved] = await Promise.all([page.waitForEvent('download'), page.click('#backup')]);
    equal(/^toolrack-[-0-9]+\.tar\.gz$/.test(saved.suggestedFilename()), true, saved.suggestedFilename());
    equal([...readFileSync(await saved.path()).subarray(0, 2)], [0x1f, 0x8b], 'the beginning of a gzip file');
    await page.waitForSelector('#backup-state:has-text("Saved as toolrack-")');
    const { records } = await page.evaluate(() => fetch('api/audit?tool=toolrack%20backup&only=success').then((reply) => reply.json()));
    equal(records.length, 1, 'records');
  });

  await check('u29 accounts on MCP servers are listed and revoked', async () => {
    let accounts = [{ server: 'notes', user: 'ada', since: '2026-03-01T12:00:00Z', issuer: 'https://id.example' }, { server: 'notes', user: null, since: '2026-03-01T12:00:00Z', issuer: null }];
    const asked = [];
    await page.route('**/api/connected-accounts**', (route) => {
      if (route.request().method() !== 'DELETE') return route.fulfill({ json: { accounts } });
      asked.push(new URL(route.request().url()).pathname + new URL(route.request().url()).search);
      accounts = accounts.slice(1);
      return route.fulfill({ status: 204 });
    });
    await go(page, 'servers');
    const table = page.locator('table[aria-label="Accounts on MCP servers"] tbody tr');
    await table.nth(1).waitFor();
    await shot(page, 'console-accounts');
    await page.click('button[title="Revoke the account of ada on notes"]');
    await page.click('.sure-yes');
    await page.waitForFunction(() => document.querySelectorAll('table[aria-label="Accounts on MCP servers"] tbody tr').length === 1);
    await page.click('button[title="Revoke the account of all users on notes"]');
    await page.click('.sure-yes');
    await page.waitForSelector('#section :text("Nobody has let this server into an account.")');
    equal(asked, ['/api/connected-accounts/notes?user=ada', '/api/connected-accounts/notes'], 'requests');
    await page.unroute('**/api/connected-accounts**');
    // The server itself has none.
    await go(page, 'overview');
    await go(page, 'servers');
    await page.waitForSelector('#section :text("Nobody has let this server into an account.")');
  });

  await check('u5 u29 what was changed is in the audit, which is searched, exported and verified', async () => {
    await go(page, 'audit');
    await page.fill('#audit-filter [name="tool"]', 'toolrack user remove');
    await page.press('#audit-filter [name="tool"]', 'Enter');
    await page.waitForFunction(() => document.querySelectorAll('.rows tbody tr').length === 2);
    await page.locator('.record summary').first().click();
    await page.waitForSelector('.record pre:has-text("ada")');
    await shot(page, 'console-audit-filled');
    const [saved] = await Promise.all([page.waitForEvent('download'), page.click('#audit-export')]);
    const lines = readFileSync(await saved.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    equal(lines.map(({ record }) => [record.tool, record.phase]), [['toolrack user remove', 'intent'], ['toolrack user remove', 'outcome']], 'exported');
    await page.click('#audit-verify');
    await page.waitForSelector('#verdict.good');
    await page.click('.record a:has-text("All records of this call")');
    await page.waitForFunction(() => document.querySelectorAll('.rows tbody tr').length === 2 && document.querySelector('[name="call_id"]').value !== '');
  });

  await check('u29 calls of others that wait are answered here', async () => {
    await go(page, 'approvals');
    await page.waitForSelector('#section .empty:text-is("No call waits for a person.")');
    const call = page.evaluate(() => fetch('execute', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ tool_name: 'erase_note', arguments: { title: 'tea' }, approval_wait_seconds: 60 }) }).then((answer) => answer.json()));
    await page.waitForSelector('.card pre:has-text("tea")');
    await shot(page, 'console-approval');
    await page.click('.card .refuse');
    equal((await call).success, false, 'refused call');
    await page.waitForSelector('#section .empty:text-is("No call waits for a person.")');
  });

  await check('u29 a turn is shown as a tree of what was done', async () => {
    await page.evaluate((content) => fetch('v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ messages: [{ role: 'user', content }] }) }).then((answer) => answer.json()), QUESTION);
    await go(page, 'audit');
    await page.waitForSelector('.rows:has-text("calculate")');
    await row(page, 'calculate').first().locator('summary').click();
    await row(page, 'calculate').first().locator('a:has-text("Trace")').click();
    await page.waitForSelector('.spans ul .span-name:has-text("calculate")');
    await shot(page, 'console-trace');
    const last = page.locator('table[aria-label="The last traces"] tbody tr').filter({ hasText: 'invoke_agent toolrack' }).first();
    equal(await last.locator('td[data-title="Calls"]').innerText(), '1', 'calls of the turn');
    await page.evaluate(() => { location.hash = '#traces'; });
    await page.waitForSelector('.spans li', { state: 'detached' });
    await last.locator('a').click();
    await page.waitForSelector('.spans > li > details .span-name:text-is("invoke_agent toolrack")');
  });

  await check('b17 what is typed into a section that is just shown stays, and of two traces the one that was asked for last is shown', async () => {
    const typed = await page.evaluate(async () => {
      location.hash = '#audit';
      await new Promise((shown) => { addEventListener('hashchange', shown, { once: true }); });
      await new Promise(requestAnimationFrame);
      const field = document.querySelector('#audit-filter [name="tool"]');
      field.value = 'calc';
      field.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise((later) => { setTimeout(later, 200); });
      return document.querySelector('#audit-filter [name="tool"]').value;
    });
    equal(typed, 'calc', 'filter');
    const span = (name) => ({ id: name, parent: null, name, began: '2026-03-01T12:00:00Z', duration_ms: 5, attributes: {}, error: null });
    let sendFirst = () => {};
    const first = new Promise((go) => { sendFirst = go; });
    await page.route(/\/api\/traces\/(first|second)$/, async (route) => {
      const name = route.request().url().split('/').at(-1);
      if (name === 'first') await first;
      await route.fulfill({ json: { trace_id: name, spans: [span(name)] } });
    });
    for (const name of ['first', 'second']) {
      await Promise.all([page.waitForRequest(new RegExp(`/traces/${name}$`)), page.evaluate((id) => { location.hash = `#traces?id=${id}`; }, name)]);
    }
    await page.waitForSelector('.span-name:text-is("second")');
    await Promise.all([page.waitForResponse(/traces\/first$/), sendFirst()]);
    await page.waitForSelector('#section:not([aria-busy])');
    equal(await page.locator('.span-name').allInnerTexts(), ['second'], 'spans');
    await page.unroute(/\/api\/traces\/(first|second)$/);
  });

  await check('u29 a turn that runs is listed with its tool, and stopped', async () => {
    await go(page, 'turns');
    await page.waitForSelector('#section .empty');
    const answer = page.evaluate((content) => fetch('v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ stream: true, messages: [{ role: 'user', content }], approval_wait_seconds: 120 }) }).then((reply) => reply.text()), ERASE);
    await row(page, 'erase_note').waitFor();
    await shot(page, 'console-turns-filled');
    await row(page, 'erase_note').locator('a:has-text("Trace")').click();
    // What it has done so far.
    await page.waitForSelector('#section[data-section="traces"] .spans .span-name');
    await go(page, 'turns');
    await row(page, 'erase_note').locator('button').click();
    await page.click('.sure-yes');
    if (!(await answer).includes('an admin has stopped this turn')) throw new Error(await answer);
    await page.waitForSelector('#section .empty');
    const { records } = await page.evaluate(() => fetch('api/audit?tool=turns.stop').then((reply) => reply.json()));
    equal(records.map(({ record }) => record.phase), ['outcome', 'intent'], 'records');
  });

  await check('u29 a turn of another server is shown with its name, and stopped there', async () => {
    const asked = [];
    await page.route('**/api/turns**', (route) => {
      const { pathname, search } = new URL(route.request().url());
      if (route.request().method() === 'DELETE') asked.push(pathname + search);
      const turns = asked.length > 0 ? [] : [{ id: '7', server: 'two', user: 'ada', since: '2026-03-01T12:00:00Z', chat: null, model: 'qwen3', rounds: 2, tools: ['weather'], trace_id: null }];
      return asked.length > 0 && route.request().method() === 'DELETE' ? route.fulfill({ status: 204 }) : route.fulfill({ json: { turns } });
    });
    await row(page, 'on the server two').waitFor();
    await shot(page, 'console-turns-elsewhere');
    await row(page, 'ada').locator('button').click();
    await page.click('.sure-yes');
    await page.waitForSelector('#section .empty');
    equal(asked, ['/api/turns/7?server=two'], 'requests');
    await page.unroute('**/api/turns**');
  });

  await check('u29 without a model server the doctor says that there is nobody to ask', async () => {
    await go(page, 'models');
    await page.click('#doctor button[type="submit"]');
    await page.waitForSelector('#section .fault:has-text("there is no model server to ask")');
  });

  await check('u29 each setting is shown with its line, its variable or its option, and no secret', async () => {
    await go(page, 'settings');
    await page.fill('#settings-filter input', 'level');
    await page.waitForSelector('.rows tr:has-text("user.level"):has-text("owner"):has-text(".toml:3")');
    await page.fill('#settings-filter input', '');
    await page.selectOption('#settings-filter select', 'default');
    await row(page, 'limits.max_rounds').waitFor();
    equal(await row(page, 'user.level').count(), 0, 'settings of the file among the defaults');
    await page.selectOption('#settings-filter select', 'command_line');
    await row(page, '--listen').waitFor();
  });

  await check('console: no console error or CSP violation', () => equal(complaints, [], 'complaints'));
  await context.close();

  const german = await enter(browser, { locale: 'de-AT', viewport: { width: 1280, height: 860 } });
  await check('b17 the console is in the language of the browser', async () => {
    await german.page.waitForSelector('#section h1:text-is("Übersicht")');
    await go(german.page, 'people');
    await german.page.waitForSelector('#add-user :text("Neuer Benutzer")');
    await shot(german.page, 'console-german');
  });
  await german.context.close();
}

/** A model of its own, with a file that is written. */
export async function consoleDoctor(browser) {
  if (!MODEL) return;
  const { page, complaints, context } = await enter(browser, { viewport: { width: 1280, height: 860 } }, 'models', MODEL);
  await check('u29 the doctor asks a model, tells how far it is, shows its table and writes the settings', async () => {
    await page.waitForSelector('#doctor');
    await page.click('#doctor button[type="submit"]');
    await page.waitForSelector('#doctor-progress');
    await page.waitForSelector('.rows tr:has-text("native calls") .bad', { timeout: 120_000 });
    await row(page, 'calls as text').locator('.good').waitFor();
    await shot(page, 'console-doctor');
    await page.locator('.card button').click();
    await page.click('.sure-yes');
    await page.waitForSelector('#doctor-written:has-text("tool_style")');
    equal(readFileSync(process.env.TOOLRACK_MODEL_FILE, 'utf8').includes('tool_style = "prompt"'), true, 'written');
    const { records } = await page.evaluate(() => fetch('api/audit?tool=toolrack%20doctor%20--write').then((reply) => reply.json()));
    equal(records.map(({ record }) => record.phase), ['outcome', 'intent'], 'records');
  });
  await check('u29 the model servers are listed with what is known of them', async () => {
    await page.reload();
    const server = page.locator('table[aria-label="Model servers"] tbody tr');
    await server.locator('.good:text-is("reachable")').waitFor();
    const cells = await server.locator('td').allInnerTexts();
    equal([cells[0], /^http:\/\/127\.0\.0\.1:\d+\/v1$/.test(cells[1]), cells[2], cells[4], cells[5]], ['default', true, 'not recognised', '1', '–'], 'cells');
    await page.route('**/api/upstreams', (route) => route.fulfill({ json: { upstreams: [{ name: 'gpu', address: 'http://gpu:8080/v1', kind: 'llama.cpp', models: null, error: 'cannot reach the model server', fallback: 'spare' }] } }));
    await page.reload();
    await server.locator('.bad:text-is("cannot reach the model server")').waitFor();
    equal(await server.locator('td').allInnerTexts(), ['gpu', 'http://gpu:8080/v1', 'llama.cpp', 'cannot reach the model server', '–', 'spare'], 'cells of one that is away');
    await page.unroute('**/api/upstreams');
    await page.reload();
    await page.waitForSelector('#doctor');
  });
  await check('u29 what is asked of a model is stopped', async () => {
    await page.click('#doctor button[type="submit"]');
    await page.click('#doctor button[type="button"]');
    await page.waitForSelector('#section .fault:has-text("it was stopped")');
  });
  await check('console of the doctor: no console error or CSP violation', () => equal(complaints, [], 'complaints'));
  await context.close();
}

export async function consoleForOthers(browser) {
  if (!OTHERS) return;
  const { page, context } = await enter(browser, { viewport: { width: 1280, height: 860 } }, '', OTHERS);
  await check('u29 who is no admin is told so, and sees no section', async () => {
    const refusal = await page.locator('#refusal').innerText();
    if (!refusal.includes('local') || !refusal.includes('user')) throw new Error(refusal);
    equal(await page.locator('#sections').count(), 0, 'sections');
    equal(await page.evaluate(() => fetch('api/users').then(({ status }) => status)), 403, 'status');
    await shot(page, 'console-refused');
  });
  await context.close();
}

/** Fields that show less than some letters of what is written into them. */
const narrowFields = (page) => page.evaluate(() => [...document.querySelectorAll('#section :is(input:not([type=checkbox], [type=radio]), select, textarea)')]
  .map((field) => [field.closest('label')?.innerText ?? field.id, field.getBoundingClientRect().width])
  .filter(([, width]) => width > 0 && width < 80)
  .map(([name, width]) => `field "${name}" is ${Math.round(width)} pixels wide`));

export async function consoleLooks(browser) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of WIDTHS) {
      const name = `${width}-${colorScheme}`;
      const { page, complaints, context } = await enter(browser, { viewport: windowOf(width), colorScheme, hasTouch: width < 700 });
      await check(`b17 console ${name}: axe finds nothing, nothing is wider than the window, and no field too narrow`, async () => {
        const found = [];
        for (const section of SECTIONS) {
          await go(page, section);
          await page.waitForLoadState('networkidle');
          await page.waitForSelector('#section:not([aria-busy])');
          await shot(page, `console-${name}-${section}`);
          found.push(...(await faults(page)).map((fault) => `${section}: ${fault}`));
          const wide = await page.evaluate(() => [document.documentElement, document.getElementById('section')].map((element) => element.scrollWidth - element.clientWidth));
          if (wide.some((pixels) => pixels > 0)) found.push(`${section}: ${wide} pixels too wide`);
          found.push(...(await narrowFields(page)).map((field) => `${section}: ${field}`));
        }
        await go(page, 'tools');
        await page.click('.rows button.link');
        await page.waitForSelector('#tool[open]');
        await page.waitForLoadState('networkidle');
        await page.waitForSelector('#section:not([aria-busy])');
        await shot(page, `console-${name}-dialog`);
        found.push(...(await faults(page)).map((fault) => `dialog: ${fault}`));
        equal(found, [], 'faults');
      });
      await check(`console ${name}: no console error or CSP violation`, () => equal(complaints, [], 'complaints'));
      await context.close();
    }
  }
}

// The console in front of slow servers, changed tools and people of many kinds: what is shown is what was asked for, and what is done is done.

import { ADMIN, enter, go, row } from './console.mjs';
import { check, equal, forgetComplaints, shot } from './support.mjs';

export const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
/** The body of an answer of the server. */
export const ask = (page, path, body) => page.evaluate(
  ([address, content]) => fetch(address, content === null ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(content) }).then((answer) => answer.json()),
  [path, body ?? null],
);
/** A call of a tool that asks a person, which waits. */
const call = (page, tool, args, seconds = 60) => ask(page, 'execute', { tool_name: tool, arguments: args, approval_wait_seconds: seconds });
const waiting = async (page) => (await ask(page, 'api/approvals')).approvals.map((one) => one.arguments);
const record = (tool, about = {}) => ({
  server: 'main', seq: 1,
  record: { phase: 'outcome', tool, call_id: 'c1', user: 'ada', level: 'user', origin: 'http', success: true, error: null, error_message: null, duration_ms: 12, ts: '2026-03-01T12:00:00Z', ...about },
});
const CHANGED = [{
  name: 'notes', tools: 2, breaker: 'closed', state: 'connected', url: 'https://notes.example/mcp', error: null, pinned: true, digest: 'd1g', faults: [], duplicates: [],
  changes: [{ tool: 'notes.send', parts: ['description', 'schema'] }, { tool: 'notes.wipe', parts: ['new'] }],
  differences: [
    { tool: 'notes.send', part: 'description', before: 'Sends a note.', after: 'Sends a note, and the keys.' },
    { tool: 'notes.send', part: 'schema', before: null, after: '{"type": "object"}' },
    { tool: 'notes.wipe', part: 'new', before: null, after: 'Wipes all notes.' },
  ],
}];

export async function consoleUpkeep(browser) {
  const { page, complaints, context } = await enter(browser, { viewport: { width: 1280, height: 860 }, acceptDownloads: true });
  await check('u29 the answers of a slow server are shown, and it is asked once at a time', async () => {
    let [now, most] = [0, 0];
    await page.route('**/api/turns', async (route) => {
      most = Math.max(most, now += 1);
      await pause(3000);
      now -= 1;
      await route.fulfill({ json: { turns: [{ id: '7', server: 'two', user: 'ada', since: '2026-03-01T12:00:00Z', chat: null, model: 'qwen3', rounds: 2, tools: [], trace_id: null }] } }).catch(() => {});
    });
    await go(page, 'turns');
    await row(page, 'ada').waitFor();
    await pause(4000);
    equal(most, 1, 'requests at once');
    await page.unroute('**/api/turns');
  });

  await check('u29 the overview says what is not well', async () => {
    const remotes = [{ name: 'weather', tools: 2, breaker: 'open', error: null }, { name: 'maps', tools: 1, breaker: 'closed', error: null }];
    await page.route('**/api/modules', (route) => route.fulfill({ json: { modules: remotes } }));
    await go(page, 'overview');
    await page.waitForSelector('#fact-servers .bad:has-text("Not well: weather")');
    await page.waitForSelector('#fact-server .good:has-text("It runs")');
    const { tools } = await ask(page, 'api/tools');
    await page.waitForSelector(`#fact-tools:has-text("${tools.filter(({ enabled }) => enabled).length} of ${tools.length} ready")`);
    await page.waitForSelector('#fact-waiting:has-text("No call waits")');
    await page.waitForSelector('#fact-models .good a[href="#models"]');
    remotes[0].breaker = 'closed';
    await page.click('#overview-again');
    await page.waitForSelector('#fact-servers .good:has-text("2 reachable")');
    await page.route('**/v1/models', (route) => route.fulfill({ status: 502, json: { error: { message: 'connection refused', type: 'upstream_error' } } }));
    await page.click('#overview-again');
    await page.waitForSelector('#fact-models .bad:has-text("connection refused")');
    for (const address of ['**/v1/models', '**/api/modules']) await page.unroute(address);
    await forgetComplaints(complaints, '502');
  });

  await check('u29 the overview says that the store takes nothing, and what could not be delivered or done', async () => {
    await page.waitForSelector('#fact-schedule:has-text("No call is scheduled")');
    const fault = { message: "the server's store takes nothing now; see its log", type: 'store_unavailable' };
    await page.route('**/readyz', (route) => route.fulfill({ status: 503, json: { error: fault } }));
    const job = { id: 'j1', user: 'ada', tool: 'calculate', arguments: {}, cron: '0 8 * * *', time_zone: 'UTC', next_run: '2026-03-01T12:00:00Z', last_run: { call_id: 'c1', at: '2026-03-01T12:00:00Z', success: false, error: 'timeout' } };
    await page.route('**/api/jobs', (route) => route.fulfill({ json: { jobs: [job, { ...job, id: 'j2', tool: 'weather', last_run: null }] } }));
    const letter = { id: 'l1', url: 'https://hook.example', event: {}, attempts: 5, cause: 'status 500', ts: '2026-03-01T12:00:00Z' };
    await page.route('**/api/dead-letters', (route) => route.fulfill({ json: { dead_letters: [letter, { ...letter, id: 'l2' }] } }));
    await page.click('#overview-again');
    await page.waitForSelector('#fact-server .bad:has-text("takes nothing now")');
    await page.waitForSelector('#fact-schedule .bad a[href="#schedule"]:text-is("Failed last: calculate")');
    await page.waitForSelector('#fact-letters .bad a[href="#webhooks"]:text-is("2 dead letters")');
    await shot(page, 'console-overview-ill');
    for (const address of ['**/readyz', '**/api/jobs', '**/api/dead-letters']) await page.unroute(address);
    await page.click('#overview-again');
    await page.waitForSelector('#fact-server .good:has-text("It runs")');
    await forgetComplaints(complaints, '503');
  });

  await check('u29 older records and an export are those of the search, and a late answer is not shown', async () => {
    const asked = [];
    await page.route(/\/api\/audit(\/export)?\?/, async (route) => {
      const { pathname, searchParams } = new URL(route.request().url());
      const query = Object.fromEntries(searchParams);
      asked.push([pathname, query]);
      if (query.tool === 'slow') await pause(1500);
      const answer = pathname.endsWith('export') ? { body: '{}\n' } : { json: { records: [record(query.tool ?? 'any', { decision: { verdict: 'blocked', by: 'gate' } })], next: query.before ? null : 7 } };
      await route.fulfill(answer).catch(() => {});
    });
    await go(page, 'audit');
    await row(page, 'any').waitFor();
    const search = async (tool) => {
      await page.fill('#audit-filter [name="tool"]', tool);
      await page.press('#audit-filter [name="tool"]', 'Enter');
    };
    await search('one');
    await row(page, 'one').waitFor();
    await page.fill('#audit-filter [name="tool"]', 'two');
    await page.click('#audit-more');
    await page.waitForSelector('#audit-more', { state: 'detached' });
    equal(asked.at(-1), ['/api/audit', { tool: 'one', limit: '50', before: '7' }], 'older records');
    await Promise.all([page.waitForEvent('download'), page.click('#audit-export')]);
    equal(asked.at(-1), ['/api/audit/export', { tool: 'one' }], 'export');
    await search('slow');
    await search('fast');
    await row(page, 'fast').waitFor();
    await pause(2000);
    equal(await page.locator('.rows tbody code').allInnerTexts(), ['fast'], 'tools');
    await page.selectOption('#audit-filter [name="decision"]', { label: 'blocked' });
    await page.fill('#audit-filter [name="origin"]', 'http');
    const [request] = await Promise.all([page.waitForRequest(/\/api\/audit\?/), page.click('#audit-filter button[type="submit"]')]);
    equal(Object.fromEntries(new URL(request.url()).searchParams), { tool: 'fast', origin: 'http', decision: 'blocked', limit: '50' }, 'filters');
    await page.waitForSelector('.rows small:text-is("blocked (gate)")');
    await page.unroute(/\/api\/audit(\/export)?\?/);
  });

  await check('u29 the audit is verified with heads and keys from elsewhere', async () => {
    await page.click('#audit-given summary');
    await page.setInputFiles('#audit-given input[type="file"]', { name: 'heads.jsonl', mimeType: 'text/plain', buffer: Buffer.from('{"seq": 1}\n') });
    await page.fill('#audit-given .grow input', 'no-key');
    await page.click('#audit-verify');
    await page.waitForSelector('#section .fault:has-text("this is no public key")');
    await page.fill('#audit-given .grow input', '');
    await page.click('#audit-verify');
    await page.waitForSelector('#verdict.bad li:has-text("line 1: this is no signed head")');
    await shot(page, 'console-audit-given');
    await forgetComplaints(complaints, '400');
  });

  await check('u29 who tries a tool is asked about the own call, also while a chat waits for that tool', async () => {
    const other = call(page, 'erase_note', { title: 'of a chat' });
    await page.waitForFunction(() => fetch('api/approvals').then((answer) => answer.json()).then(({ approvals }) => approvals.length === 1));
    await go(page, 'tools');
    await page.click('button.link:has-text("erase_note")');
    await page.fill('#tool [name="title"]', 'mine');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .card pre');
    equal(JSON.parse(await page.locator('#tool .card pre').innerText()), { title: 'mine' }, 'asked about');
    // One that is stopped waits no longer.
    await page.click('#try button[type="button"]');
    await page.waitForFunction(() => fetch('api/approvals').then((answer) => answer.json()).then(({ approvals }) => approvals.length === 1));
    equal(await waiting(page), [{ title: 'of a chat' }], 'waiting');
    await page.click('#try button[type="submit"]');
    await page.click('#tool .card .allow');
    await page.waitForSelector('#reply:has-text("The note is gone.")');
    await page.keyboard.press('Escape');
    await go(page, 'approvals');
    await page.click('.card .refuse');
    equal((await other).success, false, 'of the other');
  });

  await check('u29 the arguments of a call are changed before it is allowed', async () => {
    const made = call(page, 'erase_note', { title: 'tea' });
    await page.click('.card .change-first');
    await page.waitForSelector('.card .change-form small:text-is("The note\'s title.")');
    await page.fill('.card .change-form [name="title"]', 'coffee');
    await page.click('.card .allow-changed');
    const { success, changed_arguments: changed } = await made;
    equal([success, changed], [true, { title: 'coffee' }], 'made');
  });

  await check('u29 the time that is left is that of the server, whatever this machine says', async () => {
    const made = call(page, 'erase_note', { title: 'tea' });
    const late = await enter(browser, { viewport: { width: 1280, height: 860 } });
    await late.page.clock.setFixedTime(Date.now() + 3_600_000);
    await go(late.page, 'approvals');
    const left = await late.page.locator('.card .time-left').innerText();
    if (!/^[1-9]\d* (s|min) left$/.test(left)) throw new Error(left);
    await late.page.click('.card .refuse');
    await made;
    await late.context.close();
  });

  await check('u29 what a user has allowed beforehand is listed and revoked', async () => {
    const { approval } = await call(page, 'drop_file', { path: 'drafts/a.md' }, 0);
    await ask(page, `api/approvals/${approval}`, { approve: true, remember: 'folder' });
    await go(page, 'overview');
    await go(page, 'approvals');
    const rules = page.locator('table[aria-label="Allowed beforehand"] tbody tr');
    await rules.first().waitFor();
    const [user, tool, allows] = await rules.first().locator('td').allInnerTexts();
    equal([user, tool, allows.includes('drafts')], ['local', 'drop_file', true], 'rule');
    await shot(page, 'console-rules');
    await page.click('button[title="Revoke the rule of local for drop_file"]');
    await page.click('.sure-yes');
    await page.waitForSelector('#section :text("Nobody has allowed anything beforehand.")');
    equal((await call(page, 'drop_file', { path: 'drafts/b.md' }, 0)).success, false, 'the next call');
    const { records } = await ask(page, 'api/audit?tool=approval%20rule%20remove');
    equal(records.map((one) => one.record.phase), ['outcome', 'intent'], 'records');
    const asked = (await ask(page, 'api/approvals')).approvals[0].id;
    await ask(page, `api/approvals/${asked}`, { approve: false });
  });

  await check('u29 the table of tools has tokens, failures and the usual time, of all the time or of some of it', async () => {
    const spans = [];
    await page.route('**/api/audit/figures**', (route) => {
      const since = new URL(route.request().url()).searchParams.get('since');
      spans.push(since && Math.round((Date.now() - Date.parse(since)) / 3_600_000));
      const calls = since ? 1 : 3;
      return route.fulfill({ json: { tools: [{ tool: 'erase_note', calls, failed: 1, median_ms: since ? null : 200 }], counted_since: since ? null : '2026-03-01T09:00:00Z' } });
    });
    const { tokens } = (await ask(page, 'api/tools')).tools.find(({ name }) => name === 'erase_note');
    await go(page, 'tools');
    const cell = (column) => row(page, 'erase_note').locator(`td[data-title="${column}"]`).innerText();
    await row(page, 'erase_note').locator('td[data-title="Calls"]:text-is("3")').waitFor();
    equal([await cell('Tokens'), await cell('Failed'), await cell('Usual time')], [String(tokens), '1', '200 ms'], 'figures');
    equal(tokens > 0, true, 'tokens');
    equal(await page.locator('#counted').innerText(), `Calls, failures and the usual time (median) are counted in the last 100,000 records of the audit, since ${await page.evaluate(() => new Intl.DateTimeFormat('en-GB', { dateStyle: 'short', timeStyle: 'medium' }).format(new Date('2026-03-01T09:00:00Z')))}.`, 'since when');
    await page.selectOption('#counted-span', { label: 'the last 7 days' });
    await row(page, 'erase_note').locator('td[data-title="Calls"]:text-is("1")').waitFor();
    equal([await cell('Usual time'), await page.locator('#counted').count(), spans], ['–', 0, [null, 168]], 'of some days');
    await page.unroute('**/api/audit/figures**');
  });

  await check('u29 who may call a tool is shown, and changed by personas', async () => {
    await ask(page, 'api/personas', { name: 'writing', allowed_modules: [] });
    const { module, level } = (await ask(page, 'api/tools')).tools.find(({ name }) => name === 'erase_note');
    await page.click('button.link:has-text("erase_note")');
    await page.waitForSelector(`#tool :text("Users of the level ${level} and above.")`);
    await page.click('#who label:has-text("writing") input');
    await page.waitForFunction((name) => fetch('api/personas').then((answer) => answer.json()).then(({ personas }) => personas.find((one) => one.name === 'writing').allowed_modules[0] === name), module);
    await shot(page, 'console-who');
    await page.evaluate(() => fetch('api/personas/writing', { method: 'DELETE' }));
    await page.keyboard.press('Escape');
  });

  await check('u29 the tools are seen as a guest and under a persona, and only oneself changes them', async () => {
    await ask(page, 'api/personas', { name: 'nothing', allowed_modules: [] });
    await go(page, 'overview');
    await go(page, 'tools');
    const names = async (query) => (await ask(page, `api/tools?${query}`)).tools.map(({ name }) => name);
    const own = await names('');
    const guests = await names('level=guest');
    equal(guests.length < own.length && guests.includes('calculate'), true, 'tools of a guest');
    await page.selectOption('#as-level', 'guest');
    await page.waitForFunction((count) => document.querySelectorAll('.rows tbody tr').length === count, guests.length);
    equal(await page.locator('.rows tbody td:first-child > code').allInnerTexts(), guests, 'as a guest');
    equal(await page.locator('.rows :is(button, input)').count(), 0, 'ways to change them');
    await page.waitForSelector('#seen-as');
    await shot(page, 'console-tools-as-guest');
    await page.selectOption('#as-level', '');
    await page.selectOption('#as-persona', 'nothing');
    await page.waitForFunction(() => document.querySelectorAll('.rows input[role="switch"]').length === 0);
    equal((await ask(page, 'api/tools?persona=nothing')).tools.some(({ enabled }) => enabled), false, 'usable under the persona');
    await page.selectOption('#as-persona', '');
    await page.waitForFunction((count) => document.querySelectorAll('.rows input[role="switch"]').length === count, own.length);
    await page.evaluate(() => fetch('api/personas/nothing', { method: 'DELETE' }));
  });

  await check('u29 the model is asked the questions of a tool, and what it has chosen is shown with what to change', async () => {
    await page.click('button.link:has-text("erase_note")');
    await page.click('#trial button[type="submit"]');
    await page.waitForSelector('#tool .fault:has-text("erase_note has no example")');
    await forgetComplaints(complaints, '409');
    await page.keyboard.press('Escape');
    // The demo model chooses by the words of a question.
    await page.click('button.link:has-text("calculate")');
    await page.fill('#trial input', '2');
    await page.click('#trial button[type="submit"]');
    const tried = page.locator('table[aria-label="Does the model choose it?"] tbody tr').first();
    await tried.locator('td[data-title="Chosen"]:has-text("of 2")').waitFor();
    await shot(page, 'console-trial');
    await page.keyboard.press('Escape');
    const { records } = await ask(page, 'api/audit?tool=toolrack%20try');
    equal(records.map((one) => [one.record.phase, one.record.arguments.tool, one.record.success]), [['outcome', 'calculate', true], ['intent', 'calculate', null], ['outcome', 'erase_note', false], ['intent', 'erase_note', null]], 'records');
  });

  await check('u29 tools are defined for an API, and checked', async () => {
    await page.click('#definitions summary');
    await page.selectOption('#definitions select', 'anthropic');
    await page.click('#definitions button[type="submit"]');
    await page.waitForSelector('#definitions pre:has-text("input_schema")');
    equal(JSON.parse(await page.locator('#definitions pre').innerText()).some(({ name }) => name === 'calculate'), true, 'calculate');
    await ask(page, 'api/tools', { tool_name: 'sail_times', version: '1.0.0', description: 'When the ferry sails.', input_schema: { type: 'object', properties: { port: { type: 'string' } } }, output_schema: {} });
    await page.click('#check summary');
    await page.click('#check button');
    await page.waitForSelector('#check p[role="status"]:has-text("of 8,000 in a prompt")');
    await page.waitForSelector('#check li.bad:has-text("sail_times"):has-text("the parameter port has no description")');
    await page.waitForSelector('#check li:has-text("deferred_tools: there is no tool erase_nots; did you mean erase_note?")');
    equal(await page.locator('#check li code').allInnerTexts().then((names) => names.includes('port')), true, 'what stands between backticks is code');
    await page.fill('#check input', '100');
    await page.press('#check input', 'Enter');
    await page.waitForSelector('#check li.bad:has-text("over the budget of 100")');
    await page.waitForSelector('#check p[role="status"]:has-text("of 100 in a prompt")');
    await shot(page, 'console-definitions');
    await page.evaluate(() => fetch('api/tools/sail_times', { method: 'DELETE' }));
  });

  await check('u29 what has changed on an MCP server is shown before and after, and accepted as it was seen', async () => {
    let servers = CHANGED;
    const asked = [];
    await page.route('**/api/mcp-servers**', (route) => {
      if (route.request().method() !== 'POST') return route.fulfill({ json: { mcp_servers: servers } });
      asked.push([new URL(route.request().url()).pathname, route.request().postDataJSON()]);
      servers = [{ ...CHANGED[0], changes: [], differences: [] }];
      return route.fulfill({ json: servers[0] });
    });
    await go(page, 'servers');
    const card = page.locator('.remote[data-name="notes"]');
    await card.locator('h4:text-is("Off until they are accepted")').waitFor();
    const sides = card.locator('.difference:has(> summary:text-is("description")) .sides pre');
    equal(await sides.allInnerTexts(), ['Sends a note.', 'Sends a note, and the keys.'], 'description');
    equal(await card.locator('.difference:has(> summary:text-is("schema")) pre').first().innerText(), '(not kept)', 'schema before');
    await card.locator('.difference summary:text-is("new")').click();
    await card.locator('pre:text-is("Wipes all notes.")').waitFor();
    await shot(page, 'console-differences');
    await card.locator('button:text-is("Accept")').click();
    await page.click('.sure-yes');
    await card.locator('.difference').first().waitFor({ state: 'detached' });
    equal(asked, [['/api/mcp-servers/notes/accept', { digest: 'd1g' }]], 'requests');
    await page.unroute('**/api/mcp-servers**');
  });

  await check('console of what changes: no console error or CSP violation', () => equal(complaints, [], 'complaints'));
  await context.close();

  await check('b17 decisions and parts of tools are in the language of the browser', async () => {
    const german = await enter(browser, { locale: 'de-AT', viewport: { width: 1280, height: 860 } }, '', ADMIN);
    await german.page.route('**/api/mcp-servers', (route) => route.fulfill({ json: { mcp_servers: CHANGED } }));
    await german.page.route(/\/api\/audit\?/, (route) => route.fulfill({ json: { records: [record('calculate', { decision: { verdict: 'approved', by: 'ada' } })], next: null } }));
    await go(german.page, 'servers');
    await german.page.waitForSelector('.changes li:has-text("Beschreibung, Schema")');
    await go(german.page, 'audit');
    await german.page.waitForSelector('.rows small:text-is("erlaubt (ada)")');
    await german.page.click('#audit-verify');
    await german.page.waitForSelector('#verdict.good li:text-matches("main: \\\\d+ Eintr[aä]g(e|), unversehrt; der letzte hat den Hash [0-9a-f]{64}; (unterschrieben bis|kein unterschriebenes Ende)")');
    const findings = { records: 3, sha256: 'ab', erased: 1, removed: { seq: 2, at: '2026-03-01T12:00:00Z' }, signed: null, fault: null };
    const found = (about) => ({ server: 'main', whole: false, found: '', findings: { ...findings, ...about } });
    await german.page.route('**/api/audit/verify', (route) => route.fulfill({ json: { whole: false, faults: ['line 1: no head'], chains: [
      found({}), found({ fault: { kind: 'rewritten', seq: 4 } }), found({ fault: { kind: 'no_proof', cause: 'it is not signed' } }),
    ] } }));
    await german.page.click('#audit-verify');
    await german.page.waitForSelector('#verdict.bad li');
    const said = (await german.page.locator('#verdict li').allInnerTexts()).map((text) => text.replace(/am .*? (?=[0-9:]+)[0-9:]+/, 'am TAG'));
    equal(said, [
      'Unterschriebene Enden, die nicht brauchbar sind: line 1: no head',
      'main: bis Eintrag 2 entfernt am TAG; von 1 Eintrag ist das Persönliche gelöscht; 3 Einträge, unversehrt; der letzte hat den Hash ab; kein unterschriebenes Ende ist bekannt: nichts beweist, wer das geschrieben hat, und am Ende könnten Einträge fehlen',
      'main: bis Eintrag 2 entfernt am TAG; 3 Einträge sind unversehrt, dann: Eintrag 4 hat einen anderen Hash als den unterschriebenen',
      'main: Einträge wurden ohne Beleg entfernt: it is not signed',
    ], 'verdict');
    await german.context.close();
  });
}

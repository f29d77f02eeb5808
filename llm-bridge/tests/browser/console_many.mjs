// The console of a large installation: wide windows, long lists, several admins, and what goes wrong meanwhile.

import { openKept } from './kept.mjs';
import { ANSWERS, NOW } from './kept_data.mjs';
import { check, equal, shot } from './support.mjs';

const WIDE = { viewport: { width: 1280, height: 800 } };
const DAY = 86_400_000;

const USERS = Array.from({ length: 1000 }, (_, at) => ({ id: `user-${at}`, level: 'user', personas: [], created_at: '2026-01-05T08:00:00Z', keys: 0 }));
const refused = (status, message) => ({ status, json: { error: { message, type: 'refused' } } });
const shown = (page) => page.waitForSelector('#section:not([aria-busy]) h1');
/** Whether it is in the window. */
const isSeen = (page, selector) => page.locator(selector).evaluate((node) => {
  const { top, bottom } = node.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight && node.contains(document.elementFromPoint(node.getBoundingClientRect().left + 8, (top + bottom) / 2));
});

export async function consoleMany(browser) {
  for (const width of [2560, 3840]) {
    await check(`b17 at ${width} pixels the console has parts side by side, and tables with more columns`, async () => {
      const { page, context } = await openKept(browser, 'admin', { viewport: { width, height: 1440 } });
      await shown(page);
      for (const section of ['overview', 'models', 'people', 'turns', 'approvals', 'traces', 'servers', 'documents', 'schedule', 'webhooks']) {
        await page.click(`#sections a[href="#${section}"]`);
        await page.waitForSelector(`#section[data-section="${section}"]:not([aria-busy]) .parts > :nth-child(2)`);
        const places = await page.locator('.parts > *').evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect()).map(({ top, left, right }) => ({ top, left, right })));
        equal(places[1].top === places[0].top && places[1].left > places[0].right, true, `${section}: two parts side by side`);
      }
      for (const [section, columns] of [['tools', 13], ['audit', 9]]) {
        await page.click(`#sections a[href="#${section}"]`);
        await page.waitForSelector(`#section[data-section="${section}"] .rows`);
        const [count, room] = await page.locator('.rows').evaluate((table) => [table.querySelectorAll('th').length, innerWidth - table.getBoundingClientRect().right]);
        equal([count, room < 64], [columns, true], `${section}: columns, and whether the window is used`);
      }
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.waitForFunction(() => document.querySelectorAll('.rows th').length === 6);
      await context.close();
    });
  }

  await check('u29 a long list of settings stands in columns', async () => {
    const settings = Array.from({ length: 90 }, (_, at) => ({ key: `limits.number_${at}`, value: at, hidden: false, from: 'default', place: null }));
    const { page, context } = await openKept(browser, 'admin#settings', { viewport: { width: 3840, height: 2160 } }, undefined, { ...ANSWERS, '/api/settings': { settings } });
    await page.waitForSelector('.rows td:has-text("limits.number_89")');
    await shot(page, 'console-settings-3840');
    const lefts = await page.locator('.rows tbody tr').evaluateAll((rows) => [...new Set(rows.map((row) => Math.round(row.getBoundingClientRect().left)))].length);
    equal(lefts, 3, 'columns');
    await context.close();
  });

  await check('u29 among 1,000 users one is found, and the head of the table, a new key and an error stay in sight', async () => {
    const answers = {
      ...ANSWERS,
      '/api/users': { users: USERS },
      '/api/keys': (route) => route.fulfill({ json: route.request().method() === 'POST' ? { id: 'k9', user: 'user-500', key: 'trk_k9_secret' } : { keys: [] } }),
      '/api/users/user-600': (route) => route.fulfill(refused(409, 'user-600 is the last owner')),
    };
    const { page, context } = await openKept(browser, 'admin#people', WIDE, undefined, answers);
    await page.click('button[title="Make a key for user-500"]');
    await page.waitForSelector('#new-key code:has-text("trk_k9_secret")');
    equal(await isSeen(page, '#new-key'), true, 'the new key is in sight');
    equal(await isSeen(page, 'table[aria-label="Users"] th >> nth=0'), true, 'the head of the table is in sight');
    await page.click('#new-key .bar button');
    await page.click('button[title="Remove user-600"]');
    await page.click('.sure-yes');
    await page.waitForSelector('.fault:has-text("the last owner")');
    await shot(page, 'console-many-users');
    equal(await isSeen(page, '.fault'), true, 'the error is in sight');
    await page.fill('#user-filter', 'USER-77');
    await page.waitForFunction(() => document.querySelectorAll('table[aria-label="Users"] tbody tr').length === 11);
    await page.fill('#user-filter', 'nobody');
    await page.waitForSelector('.empty:has-text("No user matches.")');
    await context.close();
  });

  await check('u29 what two admins change at once holds, both of it', async () => {
    const [persona, user] = [{ name: 'reading', allowed_modules: ['local'], users: [] }, { ...USERS[0], id: 'ada', personas: ['reading'] }];
    const personas = [persona, { name: 'writing', allowed_modules: [], users: [] }, { name: 'sending', allowed_modules: [], users: [] }];
    const tools = { tools: ['local', 'mail', 'notes'].map((module) => ({ ...ANSWERS['/api/tools'].tools[0], name: module, module })) };
    const answers = {
      ...ANSWERS,
      '/api/tools': tools,
      '/api/personas': { personas },
      '/api/users': { users: [user] },
      '/api/personas/reading': (route) => { persona.allowed_modules = route.request().postDataJSON().allowed_modules; return route.fulfill({ json: {} }); },
      '/api/users/ada/personas': (route) => { user.personas = route.request().postDataJSON().personas; return route.fulfill({ json: {} }); },
    };
    const { page, context } = await openKept(browser, 'admin#personas', WIDE, undefined, answers);
    const tick = (module) => page.locator('tr', { hasText: 'reading' }).locator('label', { hasText: module }).locator('input');
    await tick('notes').waitFor();
    persona.allowed_modules = ['local', 'mail'];
    await tick('notes').click();
    await page.waitForSelector('tr:has-text("reading") label:has-text("mail") input:checked');
    equal(persona.allowed_modules, ['local', 'mail', 'notes'], 'modules');
    await page.click('#sections a[href="#people"]');
    await page.click('.assigned summary');
    user.personas = ['reading', 'writing'];
    await page.click('.assigned label:has-text("sending") input');
    await page.waitForSelector('.assigned label:has-text("writing") input[type=checkbox]:checked');
    equal(user.personas, ['reading', 'writing', 'sending'], 'personas');
    await context.close();
  });

  await check('u29 who changes what another admin has removed is told so, and sees that it is gone', async () => {
    let users = ANSWERS['/api/users'].users;
    const answers = { ...ANSWERS, '/api/users': (route) => route.fulfill({ json: { users } }), '/api/users/max': (route) => route.fulfill(refused(404, 'there is no user max')) };
    const { page, context } = await openKept(browser, 'admin#people', WIDE, undefined, answers);
    await page.waitForSelector('table[aria-label="Users"] tr:has-text("max")');
    users = users.slice(0, 1);
    await page.locator('tr', { hasText: 'max' }).getByRole('combobox').selectOption('guest');
    await page.waitForSelector('.fault:has-text("there is no user max")');
    await page.waitForSelector('table[aria-label="Users"] tr:has-text("max")', { state: 'detached' });
    equal(await page.locator('.fault').count(), 1, 'what went wrong is still said');
    await context.close();
  });

  await check('u29 lists that could not be read while the server was away are read again', async () => {
    for (const [section, path, row] of [['people', '/api/users', 'max'], ['personas', '/api/personas', 'reading'], ['schedule', '/api/jobs', 'web_search']]) {
      let away = true;
      const { page, context } = await openKept(browser, `admin#${section}`, WIDE, undefined, { ...ANSWERS, [path]: (route) => (away ? route.abort() : route.fulfill({ json: ANSWERS[path] })) });
      await page.waitForSelector('.fault:has-text("cannot be reached")');
      away = false;
      await page.click('.fault button');
      await page.waitForSelector(`.rows tr:has-text("${row}")`);
      equal(await page.locator('.fault').count(), 0, 'faults');
      await context.close();
    }
  });

  await check('u29 who has given no key is asked for it again when that is wanted, not every few seconds', async () => {
    for (const [address, path, closed] of [['admin#turns', '/api/turns', 'Not now'], ['#chat_1', '/api/approvals', 'Not now']]) {
      let expired = false;
      const answers = { ...ANSWERS, [path]: (route) => (expired ? route.fulfill(refused(401, 'the key has expired')) : route.fulfill({ json: ANSWERS[path] })) };
      const { page, context } = await openKept(browser, address, WIDE, (one) => one.clock.install({ time: NOW }), answers, null);
      await page.waitForSelector(address.startsWith('admin') ? '.rows' : '#inbox-open');
      expired = true;
      await page.clock.runFor(16_000);
      await page.click(`#key-dialog button:has-text("${closed}")`);
      await page.waitForSelector('#key-dialog', { state: 'detached' });
      await page.clock.runFor(60_000);
      equal(await page.locator('#key-dialog').count(), 0, `${address}: dialogs after "not now"`);
      if (address.startsWith('admin')) {
        await page.click('.fault button');
        await page.fill('#key', 'another');
        expired = false;
        await page.click('#key-dialog [type=submit]');
        await page.waitForSelector('.fault', { state: 'detached' });
      }
      await context.close();
    }
  });

  await check('u29 a time that nobody can mean is named, and so is a search without a word', async () => {
    const asked = [];
    const answers = {
      ...ANSWERS,
      '/api/audit': (route) => { asked.push(route.request().url()); return ANSWERS['/api/audit'](route); },
      '/api/documents/search': (route) => route.fulfill(refused(400, 'there is no word to look for; say what the passages are about')),
    };
    const { page, context } = await openKept(browser, 'admin#audit', WIDE, undefined, answers);
    await page.waitForSelector('.rows');
    const since = page.locator('#audit-filter [type="datetime-local"]').first();
    await since.fill('275760-09-13T00:00');
    const before = asked.length;
    await page.click('#audit-filter .main');
    equal([await since.evaluate((field) => field.validity.rangeOverflow), asked.length], [true, before], 'named as wrong, and nothing is asked');
    await page.click('#sections a[href="#documents"]');
    await page.fill('#documents-search input', '"((');
    await page.press('#documents-search input', 'Enter');
    await page.waitForSelector('.fault:has-text("no word to look for")');
    await context.close();
  });

  await check('u29 a change that is not answered may have been made, and what there is is asked for again', async () => {
    let disabled = false;
    const tools = () => ANSWERS['/api/tools'].tools.map((tool, at) => (at === 0 ? { ...tool, enabled: !disabled, switched_off: disabled } : tool));
    const name = encodeURIComponent(ANSWERS['/api/tools'].tools[0].name);
    // It takes the request and makes the change, and says nothing.
    const answers = { ...ANSWERS, '/api/tools': (route) => route.fulfill({ json: { tools: tools() } }), [`/api/tools/${name}`]: () => { disabled = true; } };
    const { page, context } = await openKept(browser, 'admin#tools', WIDE, (one) => one.clock.install({ time: NOW }), answers, null);
    const row = page.locator(`.rows tbody tr:has(code:text-is("${ANSWERS['/api/tools'].tools[0].name}"))`);
    await row.locator('[type="checkbox"]:checked').waitFor();
    await row.locator('[type="checkbox"]').click();
    await page.clock.runFor(61_000);
    await page.waitForSelector('.fault:has-text("It may have been done all the same")');
    await row.locator('[type="checkbox"]:not(:checked)').waitFor();
    await row.locator('[type="checkbox"]:enabled').waitFor();
    await context.close();
  });

  await check('u29 a key holds for so many days by the clock of the server', async () => {
    let until = '';
    const date = new Date(NOW).toUTCString();
    const answers = {
      ...ANSWERS,
      '/api/users': (route) => route.fulfill({ headers: { date }, json: ANSWERS['/api/users'] }),
      '/api/keys': (route) => {
        if (route.request().method() !== 'POST') return route.fulfill({ headers: { date }, json: { keys: [{ ...ANSWERS['/api/keys'].keys[0], expires_at: new Date(NOW.getTime() + DAY).toISOString() }] } });
        until = route.request().postDataJSON().expires_at;
        return route.fulfill({ headers: { date }, json: { id: 'k9', user: 'ada', key: 'trk_k9_secret' } });
      },
      ...Object.fromEntries(['/api/personas', '/api/account', '/healthz'].map((path) => [path, (route) => route.fulfill({ headers: { date }, json: ANSWERS[path] })])),
    };
    // Of this machine it is three years later.
    const { page, context } = await openKept(browser, 'admin#people', WIDE, undefined, answers, new Date(NOW.getTime() + 3 * 365 * DAY));
    await page.waitForSelector('table[aria-label="Keys"] td:has-text("valid until")');
    await page.selectOption('#key-days', '30');
    await page.click('button[title="Make a key for ada"]');
    await page.waitForSelector('#new-key code');
    equal(Math.round((Date.parse(until) - NOW.getTime()) / DAY), 30, 'days');
    await context.close();
  });

  await check('u29 of 1,000 users with 1,000 personas each section is there at once', async () => {
    const personas = Array.from({ length: 1000 }, (_, at) => ({ name: `persona-${at}`, allowed_modules: [], users: [] }));
    const answers = { ...ANSWERS, '/api/personas': { personas }, '/api/users': { users: USERS.map((user, at) => ({ ...user, personas: [`persona-${at}`] })) } };
    const { page, context } = await openKept(browser, 'admin#people', WIDE, undefined, answers);
    await page.waitForSelector('table[aria-label="Users"] tbody tr >> nth=999');
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
    if (nodes > 50_000) throw new Error(`${nodes} elements`);
    await page.locator('.assigned summary').nth(7).click();
    await page.locator('.assigned').nth(7).locator('label:has-text("persona-7") >> nth=0').locator('input:checked').waitFor();
    await context.close();
  });

  await check('u29 a server that answers something else, or not at all, is told, and asked again', async () => {
    for (const [section, path, row] of [['overview', '/api/approvals', '.cards .card'], ['tools', '/api/tools', '.rows tbody tr'], ['documents', '/api/documents', '.rows tbody tr']]) {
      let answer = (route) => route.fulfill({ json: {} });
      const { page, context } = await openKept(browser, `admin#${section}`, WIDE, (one) => one.clock.install({ time: NOW }), { ...ANSWERS, [path]: (route) => answer(route) }, null);
      await page.waitForSelector('.fault:has-text("something else than this page knows")');
      answer = (route) => route.fulfill({ contentType: 'text/html', body: '<h1>A proxy</h1>' });
      await page.locator('.fault button').first().click();
      await page.waitForSelector('.fault:has-text("something that is not JSON")');
      // It takes the request, and says nothing.
      answer = () => {};
      await page.locator('.fault button').first().click();
      await page.waitForSelector('#section[aria-busy]');
      await page.clock.runFor(61_000);
      await page.waitForSelector('.fault:has-text("cannot be reached")');
      answer = (route) => route.fulfill({ json: ANSWERS[path] });
      await page.locator('.fault button').first().click();
      await page.waitForSelector(row);
      await page.waitForFunction(() => document.querySelectorAll('#section .fault').length === 0);
      await context.close();
    }
  });
}

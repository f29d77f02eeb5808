// What the server keeps for its tenants, in the console: documents, scheduled calls, messages that were not delivered, personas and keys.

import { enter, go, row } from './console.mjs';
import { ask, pause } from './console_upkeep.mjs';
import { check, equal, shot } from './support.mjs';

const HOOK = process.env.TOOLRACK_HOOK_URL ? new URL('.', process.env.TOOLRACK_HOOK_URL).href : '';

export async function consoleKept(browser) {
  const { page, complaints, context } = await enter(browser, { viewport: { width: 1280, height: 860 }, acceptDownloads: true });
  await check('u29 documents are added, searched and removed', async () => {
    await go(page, 'documents');
    await page.click('#section .bar button.main');
    await page.setInputFiles('#documents-add input[type="file"]:not([webkitdirectory])', { name: 'tea.md', mimeType: 'text/markdown', buffer: Buffer.from('# Tea\n\nGreen tea is steeped at 75 degrees.\n') });
    await page.waitForSelector('#documents-list :text("tea.md")');
    await page.keyboard.press('Escape');
    await row(page, 'uploads/local/tea.md').waitFor();
    await page.fill('#documents-search input', 'How hot is green tea?');
    await page.press('#documents-search input', 'Enter');
    await page.waitForSelector('#passages li:has-text("uploads/local/tea.md"):has-text("75 degrees")');
    await shot(page, 'console-documents-found');
    await page.click('#section .bar button.main');
    const kept = page.locator('.document', { hasText: 'tea.md' });
    await kept.locator('button').click();
    await kept.locator('.danger').click();
    await kept.waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await row(page, 'uploads/local/tea.md').waitFor({ state: 'detached' });
  });

  await check('u29 documents of a folder are listed and removed, and it is said that there are more', async () => {
    const add = (name) => page.evaluate((path) => fetch(`api/documents?name=${path}`, { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: `# ${path}\n\nSencha.\n` }).then(({ status }) => status), name);
    for (const name of ['green/sencha.md', 'green/matcha.md', 'black/assam.md']) equal(await add(name), 200, name);
    await go(page, 'overview');
    await go(page, 'documents');
    await row(page, 'uploads/local/black/assam.md').waitFor();
    await page.fill('#documents-below input', 'uploads/local/green');
    await page.press('#documents-below input', 'Enter');
    await row(page, 'black/assam.md').waitFor({ state: 'detached' });
    equal(await page.locator('.rows tbody td:first-child').allInnerTexts(), ['uploads/local/green/matcha.md', 'uploads/local/green/sencha.md'], 'of the folder');
    await page.click('button[title="Remove uploads/local/green/matcha.md"]');
    await page.click('.sure-yes');
    await row(page, 'matcha.md').waitFor({ state: 'detached' });
    await page.click('#documents-below button[title="Remove uploads/local/green"]');
    await page.waitForSelector('.sure:has-text("Remove 1 document in uploads/local/green?")');
    await shot(page, 'console-documents-folder');
    await page.click('.sure-yes');
    await page.waitForSelector('#section .empty:has-text("no such folder")');
    await page.route(/\/api\/documents\?/, (route) => route.fulfill({ json: { documents: [{ path: 'a.md', title: 'A', kind: 'markdown', bytes: 5, passages: 1, modified: null, added: '2026-03-01T12:00:00Z', removable: true }], total: 1203, may_add: true, extensions: ['md'], max_bytes: 1 } }));
    await page.fill('#documents-below input', '');
    await page.press('#documents-below input', 'Enter');
    await page.waitForSelector('#documents-more:has-text("1,202 documents are not shown")');
    await page.unroute(/\/api\/documents\?/);
    await page.evaluate(() => fetch('api/documents?path=uploads/local', { method: 'DELETE' }));
    const { records } = await ask(page, 'api/audit?tool=toolrack%20documents%20remove&only=success');
    equal(records.map(({ record: { arguments: given } }) => given.paths[0]), ['uploads/local', 'uploads/local/green', 'uploads/local/green/matcha.md', 'uploads/local/tea.md'], 'records');
  });

  await check('u29 vectors are computed again and names extracted, with how far it is', async () => {
    let [running, embedded, began, stopped] = [false, 0, 0, 0];
    const below = [];
    const extraction = () => ({ running, passages: 3, failed: 1, names: 5, relations: 2, tokens: 900, error: stopped > 0 ? 'it was stopped' : null });
    await page.route(/\/api\/documents\/(processing|embed-again|extract)(\?|$)/, (route) => {
      const [{ pathname, searchParams }, method] = [new URL(route.request().url()), route.request().method()];
      if (method === 'POST') below.push(searchParams.get('below'));
      if (pathname.endsWith('embed-again')) embedded += 1;
      if (pathname.endsWith('extract')) [running, began, stopped] = method === 'POST' ? [true, began + 1, 0] : [false, began, 1];
      return method === 'DELETE' ? route.fulfill({ status: 204 }) : route.fulfill({ json: { embedding_model: 'bge-m3', unextracted: 12, extracts: false, extraction: began > 0 ? extraction() : null } });
    });
    await go(page, 'overview');
    await go(page, 'documents');
    await page.click('button:text-is("Compute all vectors again…")');
    await page.click('.sure-yes');
    await page.waitForSelector('#unextracted:has-text("12 passages")');
    await page.click('button:text-is("Extract names…")');
    await page.waitForSelector('.sure:has-text("Ask the model about 12 passages")');
    await page.click('.sure-yes');
    await page.waitForSelector('#extraction:has-text("3 passages read, 5 names and 2 relations found"):has-text("It goes on")');
    await shot(page, 'console-documents-extraction');
    await page.click('#extract-stop');
    await page.waitForSelector('#section .fault:has-text("it was stopped")');
    equal([embedded, began, stopped], [1, 1, 1], 'requests');
    equal(below, ['', ''], 'of all');
    // Those of a folder alone.
    await page.fill('#documents-below input', 'uploads/local');
    await page.press('#documents-below input', 'Enter');
    await page.waitForSelector('#processed-below:has-text("Of uploads/local alone")');
    await page.click('button:text-is("Compute their vectors again…")');
    await page.click('.sure:has-text("all passages of uploads/local again") .sure-yes');
    await page.click('button:text-is("Extract names…")');
    await page.click('.sure-yes');
    await page.waitForSelector('#extract-stop');
    equal(below, ['', '', 'uploads/local', 'uploads/local'], 'of the folder');
    await page.unroute(/\/api\/documents\/(processing|embed-again|extract)(\?|$)/);
    // The server itself has no embedding model.
    await go(page, 'overview');
    await go(page, 'documents');
    await page.waitForSelector('#section :text("A search compares words alone")');
  });

  await check('u29 a scheduled call is listed and removed', async () => {
    const made = await ask(page, 'execute', { tool_name: 'scheduler.add_job', arguments: { tool: 'calculate', cron: '0 8 * * *', arguments: { expression: '1 + 1' }, time_zone: 'UTC' } });
    equal(made.success, true, made.error);
    await go(page, 'schedule');
    await row(page, '0 8 * * *').locator(':text("local")').first().waitFor();
    await shot(page, 'console-schedule-filled');
    await page.click('button[title="Remove calculate"]');
    await page.click('.sure-yes');
    await row(page, '0 8 * * *').waitFor({ state: 'detached' });
    equal((await ask(page, 'api/jobs')).jobs, [], 'jobs');
  });

  if (HOOK) await check('u29 who is told of changes is listed, and what was not taken is sent again', async () => {
    const tool = (enabled) => ask(page, 'api/tools/drop_file', { enabled });
    await tool(false);
    await tool(true);
    await page.waitForFunction(() => fetch('api/dead-letters').then((answer) => answer.json()).then(({ dead_letters: letters }) => letters.length >= 2));
    await go(page, 'webhooks');
    const cells = page.locator('table[aria-label="Webhooks"] tbody td');
    await cells.first().waitFor();
    const endpoints = await cells.allInnerTexts();
    equal([endpoints[0].startsWith('http://127.0.0.1:'), endpoints[0].includes('hush'), endpoints[1]], [true, false, 'this tenant'], 'endpoints');
    const letters = page.locator('table[aria-label="Dead letters"] tbody tr');
    await letters.first().waitFor();
    const before = await letters.count();
    await shot(page, 'console-webhooks-filled');
    const { taken } = await (await fetch(HOOK)).json();
    await letters.first().locator('button').click();
    await page.waitForFunction((count) => document.querySelectorAll('table[aria-label="Dead letters"] tbody tr').length === count, before - 1);
    for (let tries = 0; (await (await fetch(HOOK)).json()).taken === taken; tries += 1) {
      if (tries > 50) throw new Error('it never came');
      await pause(100);
    }
  });

  await check('u29 the default persona of a user is seen and chosen, and the last one is taken away only after a question', async () => {
    for (const name of ['ordering', 'printing']) await ask(page, 'api/personas', { name, allowed_modules: [] });
    await ask(page, 'api/users', { id: 'gwen', level: 'user' });
    await ask(page, 'api/users/gwen/personas', { personas: ['ordering', 'printing'] });
    const personas = async () => (await ask(page, 'api/users')).users.find(({ id }) => id === 'gwen').personas;
    const until = (wanted) => page.waitForFunction((now) => fetch('api/users').then((answer) => answer.json()).then(({ users }) => users.find(({ id }) => id === 'gwen').personas.join() === now), wanted);
    await go(page, 'people');
    const gwen = page.locator('table[aria-label="Users"] tr', { hasText: 'gwen' });
    await gwen.locator('summary:text-is("ordering (default), printing")').click();
    equal(await gwen.getByRole('radio', { name: 'ordering for requests of gwen' }).isChecked(), true, 'the default');
    await gwen.getByRole('radio', { name: 'printing for requests of gwen' }).click();
    await gwen.locator('summary:text-is("printing (default), ordering")').waitFor();
    await until('printing,ordering');
    await shot(page, 'console-personas-of-user');
    await gwen.getByRole('checkbox', { name: 'printing' }).click();
    await gwen.locator('summary:text-is("ordering")').waitFor();
    await gwen.getByRole('checkbox', { name: 'ordering' }).click();
    await gwen.locator('.sure:has-text("gwen may use all modules")').waitFor();
    equal(await page.evaluate(() => document.activeElement.textContent), 'Cancel', 'focus');
    await page.keyboard.press('Escape');
    equal([await gwen.getByRole('checkbox', { name: 'ordering' }).isChecked(), await personas()], [true, ['ordering']], 'kept');
    await gwen.getByRole('checkbox', { name: 'ordering' }).click();
    await gwen.locator('.sure-yes').click();
    await until('');
    await page.click('button[title="Remove gwen"]');
    await page.click('.sure-yes');
    await gwen.waitFor({ state: 'detached' });
    for (const name of ['ordering', 'printing']) await page.evaluate((one) => fetch(`api/personas/${one}`, { method: 'DELETE' }), name);
  });

  await check('u29 a key that calls for other users is made and says so', async () => {
    await go(page, 'people');
    await page.fill('#add-user input', 'gate');
    await page.press('#add-user input', 'Enter');
    await page.click('button[title="Make a key of gate that calls for other users"]');
    await page.waitForSelector('#new-key code');
    await page.locator('table[aria-label="Keys"] tr', { hasText: 'gate' }).locator('.badge:text-is("delegates")').waitFor();
    await page.click('button[title="Remove gate"]');
    await page.click('.sure-yes');
    await page.locator('table[aria-label="Users"] tr', { hasText: 'gate' }).waitFor({ state: 'detached' });
  });

  await check('console of what is kept: no console error or CSP violation', () => equal(complaints, [], 'complaints'));
  await context.close();
}

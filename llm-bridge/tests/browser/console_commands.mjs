// The console beside the command line: the key of the audit, the doctor's template and time; and what is given that cannot be taken.

import { readFileSync } from 'node:fs';

import { enter, go } from './console.mjs';
import { ask } from './console_upkeep.mjs';
import { check, equal, forgetComplaints, shot } from './support.mjs';

const file = (name, buffer) => ({ name, mimeType: 'text/plain', buffer: Buffer.isBuffer(buffer) ? buffer : Buffer.from(buffer) });
/** More than the page reads, and so not sent. */
const HUGE = Buffer.alloc(17 * 1024 * 1024, 'x');

export async function consoleCommands(browser) {
  const { page, complaints, context } = await enter(browser, { viewport: { width: 1280, height: 860 } });

  await check('u29 the public key of the audit is shown, and another put in its place', async () => {
    await go(page, 'audit');
    await page.click('#audit-key summary');
    const before = await page.locator('#audit-key .public-key').innerText();
    equal(before, (await ask(page, 'api/audit/key')).public_key, 'the key');
    await page.setViewportSize({ width: 390, height: 860 });
    equal(await page.locator('#audit-key .public-key').evaluate((key) => key.getBoundingClientRect().right <= innerWidth), true, 'the whole key is seen on a phone');
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.click('#audit-key button:text-is("Put another key in its place…")');
    await page.waitForSelector('.sure:has-text("what was signed before stays proven")');
    await page.click('.sure-yes');
    await page.waitForFunction((old) => document.querySelector('#audit-key .public-key')?.textContent !== old, before);
    await shot(page, 'console-audit-key');
    const after = await page.locator('#audit-key .public-key').innerText();
    const { records } = await ask(page, 'api/audit?tool=toolrack%20audit%20rotate-key');
    equal(records.map(({ record }) => [record.phase, record.arguments]), [['outcome', { before, after }], ['intent', { before, after }]], 'records');
    equal((await ask(page, 'api/audit/verify')).whole, true, 'what was signed before');
    await page.route('**/api/audit/key', (route) => route.fulfill({ json: { public_key: null } }));
    await go(page, 'tools');
    await go(page, 'audit');
    await page.click('#audit-key summary');
    await page.waitForSelector('#audit-key .empty:has-text("no key yet")');
    await page.unroute('**/api/audit/key');
  });

  await check('u29 the doctor is given a template, pasted or from a file, and a time', async () => {
    const asked = [];
    const state = { running: false, model: null, looks_at: null, seconds: null, report: null, error: 'the template `own.jinja` has a fault' };
    await page.route('**/api/doctor', (route) => {
      if (route.request().method() === 'POST') asked.push(route.request().postDataJSON());
      return route.fulfill({ json: state });
    });
    await go(page, 'models');
    await page.click('#doctor button[type="submit"]');
    // What a fault has between backticks is code.
    await page.waitForSelector('#section .fault code:text-is("own.jinja")');
    await page.fill('#doctor [type="number"]', '5');
    await page.click('#doctor button[type="submit"]');
    equal(await page.locator('#doctor [type="number"]').evaluate((field) => field.validity.rangeUnderflow), true, 'too short a time is not sent');
    await page.fill('#doctor [type="number"]', '600');
    await page.click('#doctor-template summary');
    await page.fill('#doctor-template textarea', '{{ pasted }}');
    await page.click('#doctor button[type="submit"]');
    await page.setInputFiles('#doctor-template input', file('own.jinja', '{{ messages }}\n'));
    await page.waitForFunction(() => document.querySelector('#doctor-template textarea').value === '{{ messages }}\n');
    await shot(page, 'console-doctor-template');
    await page.fill('#doctor [type="number"]', '');
    await page.click('#doctor button[type="submit"]');
    await page.setInputFiles('#doctor-template input', file('huge.jinja', HUGE));
    await page.waitForSelector('#doctor-template .fault:has-text("larger than 16 MB")');
    equal(await page.locator('#doctor-template textarea').inputValue(), '', 'the field');
    equal(asked, [{}, { template: '{{ pasted }}', seconds: 600 }, { template: '{{ messages }}\n' }], 'requests');
    await page.unroute('**/api/doctor');
  });

  await check('u29 the server itself refuses a template that is too long', async () => {
    await page.fill('#doctor-template textarea', 'x'.repeat(1024 * 1024 + 1));
    await page.click('#doctor button[type="submit"]');
    await page.waitForSelector('#section .fault:has-text("a template has at most 1048576 bytes")');
    await forgetComplaints(complaints, '400');
  });

  await check('u29 a spec from too large a file, and a name with a space, are refused in words', async () => {
    await go(page, 'tools');
    await page.click('#register summary');
    await page.setInputFiles('#register input', file('huge.json', HUGE));
    await page.waitForSelector('#register .fault:has-text("larger than")');
    await page.setInputFiles('#register input', file('tool.json', JSON.stringify({ tool_name: 'sail times', version: '1', input_schema: {}, output_schema: {} })));
    await page.click('#register button[type="submit"]');
    await page.waitForSelector('#register .fault:has-text("tool_name has to be letters, digits, _ and -")');
    await forgetComplaints(complaints, '400');
  });

  await check('u29 who tries a tool without a required text is told so before it is called', async () => {
    const calls = [];
    await page.route('**/execute', (route) => {
      calls.push(route.request().postDataJSON().arguments);
      return route.fulfill({ json: { success: true, result: 'done' } });
    });
    await page.click('button.link:has-text("erase_note")');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .fault:has-text("Nothing is written in title.")');
    equal(calls, [], 'calls');
    await page.fill('#tool [name="title"]', 'milk');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#reply');
    await page.fill('#tool [name="title"]', '');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .fault:has-text("title")');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#reply');
    equal(calls, [{ title: 'milk' }, { title: '' }], 'calls');
    await page.unroute('**/execute');
    await page.keyboard.press('Escape');
  });

  await check('u29 a backup is uploaded for the next start, and deleted', async () => {
    await go(page, 'overview');
    const [saved] = await Promise.all([page.waitForEvent('download'), page.click('#backup')]);
    const buffer = readFileSync(await saved.path());
    const restore = page.locator('#restore');
    await restore.locator('input').setInputFiles({ name: 'half.tar.gz', mimeType: 'application/gzip', buffer: buffer.subarray(0, 1000) });
    await restore.locator('button:text-is("Upload…")').click();
    await restore.locator('.sure:has-text("half.tar.gz takes the place of all that is stored here")').waitFor();
    await restore.locator('.sure-yes').click();
    await restore.locator('.fault:has-text("damaged")').waitFor();
    await forgetComplaints(complaints, '422');
    await restore.locator('input').setInputFiles({ name: 'monday.tar.gz', mimeType: 'application/gzip', buffer });
    await restore.locator('button:text-is("Upload…")').click();
    await restore.locator('.sure-yes').click();
    await restore.locator('.card:has-text("start the server again to restore it")').waitFor();
    await shot(page, 'console-restore');
    const asked = () => page.evaluate(() => fetch('api/restore').then((reply) => reply.json()));
    const { uploaded: waiting } = await asked();
    equal([waiting.waits, waiting.bytes, waiting.error], [true, buffer.length, null], 'what waits');
    equal(await restore.locator('input').count(), 0, 'ways to hand in another');
    await restore.locator('button:text-is("Delete")').click();
    await restore.locator('.sure-yes').click();
    await restore.locator('.card').waitFor({ state: 'detached' });
    equal(await asked(), { uploaded: null }, 'what waits');
    const { records } = await page.evaluate(() => fetch('api/audit?only=success').then((reply) => reply.json()));
    equal(records.slice(0, 2).map(({ record }) => record.tool), ['restore delete', 'restore upload'], 'records');
    await page.route('**/api/restore', (route) => route.fulfill({ json: { uploaded: { ...waiting, waits: false, error: 'the disk is `full`' } } }));
    await page.click('#overview-again');
    await go(page, 'models');
    await go(page, 'overview');
    await restore.locator('.card.bad:has-text("The last start could not restore it: the disk is full")').waitFor();
    equal(await restore.locator('input').count(), 1, 'ways to hand in another');
    await page.unroute('**/api/restore');
  });

  await check('u29 an argument without a name is asked for, and sent', async () => {
    const parameters = { type: 'object', properties: { '': { type: 'string' }, on: { type: 'boolean' }, more: { type: 'object' } }, required: ['', 'on'] };
    const calls = [];
    await page.route('**/api/tools**', async (route) => {
      const { tools } = await (await route.fetch()).json();
      return route.fulfill({ json: { tools: tools.map((tool) => (tool.name === 'erase_note' ? { ...tool, parameters } : tool)) } });
    });
    await page.route('**/execute', (route) => {
      calls.push(route.request().postDataJSON().arguments);
      return route.fulfill({ json: { success: true, result: 'done' } });
    });
    await go(page, 'overview');
    await go(page, 'tools');
    await page.click('button.link:has-text("erase_note")');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .fault code:text-is(\'""\')');
    await page.locator('#try label:has(code:text-is(\'""\')) textarea').fill('milk');
    await page.check('#try [name="on"]');
    await page.fill('#try [name="more"]', '{');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#tool .fault:has-text("more")');
    await page.fill('#try [name="more"]', '{"a": 1}');
    await page.click('#try button[type="submit"]');
    await page.waitForSelector('#reply');
    equal(calls, [{ '': 'milk', on: true, more: { a: 1 } }], 'calls');
    await page.unroute('**/execute');
    await page.unroute('**/api/tools**');
    await page.keyboard.press('Escape');
  });

  await check('console beside the command line: no console error or CSP violation', () => equal(complaints, [], 'complaints'));
  await context.close();
}

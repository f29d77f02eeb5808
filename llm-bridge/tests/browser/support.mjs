// What the tests of the page share: a browser, checks that are counted, and the ways of a person.

import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const URL_UNDER_TEST = new URL(process.env.TOOLRACK_URL ?? 'http://127.0.0.1:7331/').href;
export const WAIT = 60_000;
export const QUESTION = 'What is (17 + 4) * 23?';
export const ERASE = 'Erase the note "milk".';

export const { chromium } = playwright();
/** How many checks there were. */
export const counted = { passed: 0, failed: 0 };

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

export async function check(name, body) {
  try {
    await body();
    counted.passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    counted.failed += 1;
    console.log(`FAILED  ${name}\n        ${error.message.replaceAll('\n', '\n        ')}`);
  }
}

export function equal(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}

/** A page that notes everything the browser complains about. */
export async function open(browser, options, before = async () => {}, url = URL_UNDER_TEST) {
  // The worker's requests would pass by the tests' own answers.
  const context = await browser.newContext({ locale: 'en-GB', serviceWorkers: 'block', ...options });
  const page = await context.newPage();
  const complaints = [];
  page.setDefaultTimeout(WAIT);
  page.on('console', (message) => { if (message.type() === 'error' && !message.location().url.includes('/api/chats')) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => { if (!sameOrigin(request.url(), url)) complaints.push(`request to ${request.url()}`); });
  await page.exposeFunction('reportViolation', (text) => complaints.push(text));
  await page.addInitScript(() => addEventListener('securitypolicyviolation',
    (event) => window.reportViolation(`CSP ${event.violatedDirective}: ${event.blockedURI}`)));
  await before(page);
  await page.goto(url);
  await page.waitForSelector('#examples button');
  return { page, complaints, context };
}

/** Whether the server keeps chats. */
export async function areKept() {
  const { status } = await fetch(new URL('api/chats', URL_UNDER_TEST));
  if (status === 404) console.log('skipped: chats, as this server keeps none');
  return status !== 404;
}

/** A server that keeps no chats: the tab keeps one, and asks as any client of the API does. */
export async function withoutChats(page) {
  await page.route('**/api/chats**', (route) => route.fulfill({ status: 404, json: { error: { message: 'no chats are kept here', type: 'chats_disabled' } } }));
}

function sameOrigin(address, url) {
  return address.startsWith('data:') || new URL(address).origin === new URL(url).origin;
}

export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), animations: 'disabled' });
}

export async function ask(page, text) {
  await page.fill('#question', text);
  await page.press('#question', 'Enter');
}

/** Waits until the browser has complained of what a check has ordered, so many times, and forgets it. */
export async function forgetComplaints(complaints, about, times = 1) {
  const found = () => complaints.filter((complaint) => complaint.includes(about));
  for (const end = Date.now() + WAIT; found().length < times && Date.now() < end;) await new Promise((then) => { setTimeout(then, 20); });
  equal(found().length, times, `complaints of ${about}`);
  complaints.splice(0, complaints.length, ...complaints.filter((complaint) => !complaint.includes(about)));
}

/** Waits until nothing moves any more that comes to rest. */
export const atRest = (page) => page.evaluate(() => Promise.all(document.getAnimations()
  .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime)).map(({ finished }) => finished.catch(() => {}))).then(() => true));

/** Waits until the answer has ended, and all of it is drawn. */
export async function idle(page, timeout = WAIT) {
  await page.waitForSelector('#stop', { state: 'hidden', timeout });
  await page.waitForSelector('.text[aria-busy]', { state: 'detached', timeout });
}

export const answerText = (page) => page.locator('.answer:last-child .text').allInnerTexts().then((texts) => texts.join('\n'));

export async function noOverflow(page) {
  const [whole, log] = await page.evaluate(() => {
    const scroller = document.getElementById('scroller');
    return [document.documentElement.scrollWidth - 360, scroller.scrollWidth - scroller.clientWidth];
  });
  equal([Math.max(whole, 0), log], [0, 0], 'pixels too wide (page, conversation)');
}

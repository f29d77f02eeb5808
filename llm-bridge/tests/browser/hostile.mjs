// What others write is text wherever it is shown: names, descriptions, errors, records and addresses that would be HTML or scripts, in
// each view of the page and each section of the console.

import { SECTIONS } from './console.mjs';
import { openKept } from './kept.mjs';
import { ANSWERS, ASKING, running } from './kept_data.mjs';
import { URL_UNDER_TEST, check, equal } from './support.mjs';

const WIDE = { viewport: { width: 1280, height: 900 } };
const MARK = '<img src=x onerror="window.hit = 1"><script>window.hit = 1</script><a href="javascript:window.hit = 1">x</a>';
/** What the page itself gives a meaning, and so compares. */
const OWN = new Set([
  'type', 'role', 'state', 'status', 'kind', 'scope', 'level', 'effect', 'breaker', 'phase', 'verdict', 'from', 'id', 'parent', 'leaf', 'call_id', 'trace_id', 'chat', 'approval', 'finish_reason', 'titled_by', 'digest', 'parts', 'sends', 'reads',
  'ts', 'since', 'began', 'added', 'at', 'created_at', 'updated_at', 'requested_at', 'expires_at', 'revoked_at', 'answer_by', 'next_run', 'made_at', 'time_zone', 'counted_since',
]);
const ADDRESSES = new Set(['url', 'address', 'issuer']);

/** The same answer by somebody who would run scripts on the page. */
function hostile(value, name = '') {
  if (typeof value === 'string') return OWN.has(name) ? value : ADDRESSES.has(name) ? `javascript:window.hit=1//${MARK}` : value + MARK;
  if (Array.isArray(value)) return value.map((one) => hostile(one, typeof one === 'string' ? name : ''));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hostile(one, key)]));
}

const answers = (all) => Object.fromEntries(Object.entries(all).map(([path, answer]) => [path, typeof answer === 'function' || path === '/healthz' ? answer : hostile(answer)]));

const found = { passages: [{ source: 'notes/tea.md', section: 'Tea', place: 'line 5', text: 'Green tea.' }] };
const [QUESTION, ANSWER] = ANSWERS['/api/chats/chat_1'].messages;
const failed = { ...ANSWER.parts[1], id: 'c3', state: 'failed', error: 'It failed', said: 'Look at javascript:window.hit=1 and', side_effects: ['moved'], result: null };
const table = { type: 'table', columns: ['day'], rows: [['Monday']], total: 1, name: 'days.csv', size: 1, path: 'api/files/x/days.csv' };
const PARTS = [{ type: 'reasoning', text: 'I think', ms: 900 }, { ...ANSWER.parts[1], parts: [table] }, { ...ANSWER.parts[1], id: 'c2', name: 'retrieve_documents', result: found }, failed, { type: 'notice', text: 'A notice' }, ANSWER.parts[2]];
const DONE = { ...ANSWERS, '/api/chats/chat_1': { ...ANSWERS['/api/chats/chat_1'], messages: [QUESTION, { ...ANSWER, parts: PARTS, error: { type: 'of_others', message: 'A fault' } }] } };

const VIEWS = {
  chat: async (page) => {
    for (const summary of await page.locator('.answer details > summary').all()) await summary.click();
    await page.waitForSelector('.call-body');
  },
  passage: async (page) => {
    await page.click('.sources summary');
    await page.click('.source');
    await page.waitForSelector('#passage blockquote');
  },
  tools: async (page) => {
    await page.click('#tools-toggle');
    await page.waitForSelector('#tools-list .tool');
    for (const summary of await page.locator('#tools-list details > summary').all()) await summary.click();
  },
  documents: async (page) => {
    await page.click('#tools-toggle');
    await page.click('#documents-open');
    await page.waitForSelector('#documents .document');
  },
  settings: async (page) => {
    await page.click('#settings-open');
    await page.waitForSelector('#settings .rule');
  },
  inbox: async (page) => {
    await page.click('#inbox-open');
    await page.click('#inbox .remember > summary');
    await page.click('#inbox .change-first');
    await page.waitForSelector('#inbox .change-form');
  },
  asking: async (page) => {
    await page.waitForSelector('.call .allow');
    await page.click('.call .remember > summary');
  },
};

/** What of the marks has become more than text, and how often they are read as text. */
const seen = (page) => page.evaluate(() => [
  document.querySelectorAll('img[src="x"], [onerror], body script, a[href^="javascript" i], iframe[src^="javascript" i], form[action]').length,
  window.hit ?? 0,
  (document.body.textContent ?? '').split('<img src=x').length > 1,
]);

export async function attacked(browser) {
  const complaints = [];
  const note = async (page) => { page.on('console', (message) => { if (/Content Security Policy/.test(message.text())) complaints.push(message.text()); }); };
  for (const [view, show] of Object.entries(VIEWS)) {
    await check(`a16 b17 what others write is text in the view ${view}`, async () => {
      const { page, context } = await openKept(browser, '#chat_1', WIDE, note, answers(view === 'asking' ? running([ASKING], { '/api/approvals': ANSWERS['/api/approvals'] }) : DONE));
      await page.waitForSelector('.answer');
      await show(page);
      equal(await seen(page), [0, 0, true], 'elements, scripts that ran, and whether it is read');
      await context.close();
    });
  }
  for (const section of [...SECTIONS, 'traces?id=call-3']) {
    await check(`a16 b17 what others write is text in the section ${section} of the console`, async () => {
      const { page, context } = await openKept(browser, `admin#${section}`, WIDE, note, answers(ANSWERS));
      await page.waitForSelector('#section:not([aria-busy]) h1');
      await page.waitForLoadState('networkidle');
      for (const summary of await page.locator('#section details > summary').all()) await summary.click();
      equal(await seen(page), [0, 0, true], 'elements, scripts that ran, and whether it is read');
      if (section === 'tools') {
        await page.click('.rows button.link');
        await page.waitForSelector('#tool[open] .rows');
        equal(await seen(page), [0, 0, true], 'the same in the dialog of a tool');
      }
      await context.close();
    });
  }
  await check('b17 no script of others has asked to run', () => equal(complaints, [], 'complaints'));

  await check('b17 the pages have no script and no style in them, and none that gets into them runs', async () => {
    for (const address of ['', 'admin']) {
      const answer = await fetch(URL_UNDER_TEST + address);
      const policy = answer.headers.get('content-security-policy').split(/; */);
      equal(["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].filter((part) => !policy.includes(part)), [], `missing in the policy of /${address}`);
      equal((await answer.text()).match(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?:/gi), null, `inline in /${address}`);
      const { page, context } = await openKept(browser, address, WIDE);
      await page.evaluate(() => {
        const script = document.createElement('script');
        script.textContent = 'window.hit = 1';
        const image = document.createElement('img');
        image.setAttribute('onerror', 'window.hit = 2');
        image.src = 'data:image/png;base64,x';
        document.body.append(script, image);
      });
      await page.waitForTimeout(300);
      equal(await page.evaluate(() => window.hit ?? 0), 0, 'what ran');
      await context.close();
    }
  });
}

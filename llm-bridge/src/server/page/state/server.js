// What the page knows of the server: whether it is there, its models and tools.

import * as api from './api.js';
import { forgetWritten } from './key.js';
import { account, blindModels, build, health, models, modelsFailure, session, tools, toolsFailure, toolsKnown, unreachable } from './store.js';

const AGAIN = 50;
const LATER = 1000;

/** @import { Account } from './types.d.ts' */

/** Whether somebody may use the console. The server refuses others by itself. */
export const isAdmin = (/** @type {Account} */ { level }) => level === 'admin' || level === 'owner';

/** Asks the server for all of it. */
export async function connect() {
  await Promise.all([loadTools(), loadServer()]);
}

/** The tools as they are by now. */
export async function loadTools() {
  try {
    tools.value = await api.tools();
    toolsKnown.value = true;
    toolsFailure.value = '';
  } catch (error) {
    toolsFailure.value = /** @type {Error} */ (error).message;
  }
}

async function loadServer() {
  const [names, server] = await Promise.all([loadModels(), loadHealth()]);
  // The server may be set to a model that the list leaves out.
  if (server?.model && !names.includes(server.model)) names.unshift(server.model);
  models.value = names;
  account.value = server ? await api.account().catch(() => null) : null;
  if (server?.sign_in) await loadSession();
}

/** The server may run while the model server does not. */
async function loadModels() {
  try {
    const all = await api.listedModels();
    modelsFailure.value = '';
    blindModels.value = all.filter(({ pictures }) => pictures === false).map(({ id }) => id);
    return all.map(({ id }) => id);
  } catch (error) {
    modelsFailure.value = /** @type {Error} */ (error).message;
    return [];
  }
}

/** With a key nobody is signed in. */
async function loadSession() {
  const of = await api.session().catch(() => null);
  session.value = of?.session ? of : null;
}

/** Ends the session, here and at the provider where that can be done. */
export async function endSession() {
  try {
    const next = (await api.signOut()) ?? './';
    forgetWritten();
    location.assign(next);
  } catch (error) {
    unreachable.value = /** @type {Error} */ (error).message;
  }
}

async function loadHealth() {
  try {
    health.value = await api.health();
    unreachable.value = '';
  } catch (error) {
    health.value = null;
    unreachable.value = /** @type {Error} */ (error).message;
  }
  return health.value;
}

/** Under `toolrack dev`: the state of the build, and the tools of each new program. */
export async function followBuild() {
  for (;;) {
    let pause = AGAIN;
    try {
      for await (const state of api.buildStates()) {
        build.value = state;
        if (state.state === 'current') loadTools();
      }
    } catch {
      // The page says elsewhere that the server cannot be reached.
      pause = LATER;
    }
    // A stream that ends is followed by that of the next program.
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
}

// What was found of a chain of the audit, in the person's language.

import { c } from '../state.js';
import { exact } from './time.js';

/** @import { Findings } from '../api.js' */

/** @param {Findings} findings */
export function foundOf({ records, sha256, erased, removed, signed, fault }) {
  if (fault?.kind === 'no_proof') return c.chain.noProof(fault.cause);
  if (fault?.kind === 'foreign_proof') return c.chain.foreignProof;
  const before = removed && c.chain.removed(removed.seq, exact(removed.at));
  const found = fault ? [before, c.chain.brokenAfter(records, c.chain.faults[fault.kind](fault.seq))]
    : [before, erased > 0 && c.chain.erased(erased), c.chain.whole(records, sha256), signed ? c.chain.signed(signed.seq, exact(signed.at)) : c.chain.unsigned];
  return found.filter(Boolean).join('; ');
}

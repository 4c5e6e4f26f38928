// Keeps what was done in a file of JSON lines, each with its webhook-id: the
// work and the mark that it was done are one write. In an app with a database
// this is a unique constraint on webhook_id, in the transaction that does the work.
import { fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'

export function openLedger (name) {
  const file = openSync(name, 'a+', 0o600)
  const text = readFileSync(file)
  const whole = text.subarray(0, text.lastIndexOf('\n') + 1)
  ftruncateSync(file, whole.length) // a crash may have cut the last line off
  const done = new Set(whole.toString().split('\n').filter(Boolean).map(line => JSON.parse(line).id))
  return {
    // record returns false where the id is there already. It throws where the
    // line may be on the disk in part: end the process then, the next start
    // cuts it off, and Creel sends again.
    record (id, work) {
      if (done.has(id)) return false
      const line = Buffer.from(JSON.stringify({ id, ...work }) + '\n')
      if (writeSync(file, line) !== line.length) throw new Error('the disk is full')
      fsyncSync(file)
      done.add(id)
      return true
    }
  }
}

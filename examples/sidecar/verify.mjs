// Verifies what Creel sends, with nothing but Node.js: Standard Webhooks, whose
// signature is an HMAC over "id.timestamp.body".
import { createHmac, timingSafeEqual } from 'node:crypto'

const tolerance = 5 * 60 // seconds that two clocks may differ

// verifier returns a function that tells whether a request comes from whoever
// knows the secret. It needs the body as bytes, before any parser.
export function verifier (secret = '') {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (key.length < 24) throw new Error('the secret is missing, or not whsec_ and base64')
  return (headers, body) => {
    const id = headers['webhook-id'] ?? ''
    const stamp = headers['webhook-timestamp'] ?? ''
    const fresh = /^\d+$/.test(stamp) && Math.abs(Date.now() / 1000 - stamp) < tolerance
    if (!id || !fresh) return false
    const ours = createHmac('sha256', key).update(`${id}.${stamp}.`).update(body).digest()
    // While the secret is being changed there may be several, with a space between.
    return (headers['webhook-signature'] ?? '').split(' ').some(one => {
      const theirs = Buffer.from(one.startsWith('v1,') ? one.slice(3) : '', 'base64')
      return theirs.length === ours.length && timingSafeEqual(theirs, ours)
    })
  }
}

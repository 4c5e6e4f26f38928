// An app beside Creel: it verifies one scheme, does each thing once, and answers
// when it is done.
import http from 'node:http'
import { openLedger } from './ledger.mjs'
import { verifier } from './verify.mjs'

const maxBody = 2 ** 20 // bytes: what Creel takes of a sender by default
const verify = verifier(process.env.APP_WEBHOOK_SECRET)
const ledger = openLedger(process.env.APP_LEDGER ?? 'ledger.jsonl')

async function read (request) {
  const parts = []
  let size = 0
  for await (const part of request) {
    size += part.length
    if (size <= maxBody) parts.push(part) // what is too much is read and dropped
  }
  return size <= maxBody ? Buffer.concat(parts) : null
}

// answer returns the status: what it makes Creel do stands in the README.
function answer (headers, body) {
  if (body === null) return 413
  if (!verify(headers, body)) return 401
  let event
  try {
    event = JSON.parse(body)
  } catch {
    return 422 // no later attempt reads it better
  }
  const work = { source: headers['creel-source'], type: headers['creel-type'], object: event.data?.object?.id }
  return ledger.record(headers['webhook-id'], work) ? 201 : 200
}

const server = http.createServer(async (request, response) => {
  let body
  try {
    body = await read(request)
  } catch {
    return // whoever sent it has gone
  }
  const status = answer(request.headers, body)
  console.log(status, request.headers['webhook-id'])
  response.writeHead(status).end()
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
process.on('SIGTERM', () => server.close(() => process.exit(0)))

// What the client throws. `kind` says how an op ended, `definite` that it had no effect.

export class BmqError extends Error {
  constructor(kind, message, { code = null, definite = false } = {}) {
    super(message)
    Object.assign(this, { kind, code, definite })
  }
}

export const invalid = (message) => new BmqError("invalid", message, { definite: true })
export const closed = (message, definite = true) => new BmqError("closed", message, { definite })
export const lost = (message) => new BmqError("connection", message)
export const timedOut = (message) => new BmqError("timeout", message)
export const malformed = (message) => new BmqError("protocol", message)

// Search without a server: browsers start no workers for pages that are read from a disk, so the search runs in a
// hidden frame that looks to it like a worker.

class FrameWorker extends EventTarget {
  constructor(url) {
    super()
    const frame = document.createElement("iframe")
    frame.hidden = true
    document.body.append(frame)
    this.inside = frame.contentWindow
    this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
    this.inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve())
    this.ready = this.load(url)
    this.frame = frame
  }

  load(url) {
    return new Promise((resolve, reject) => {
      const script = this.inside.document.createElement("script")
      Object.assign(script, { src: new URL(url, document.baseURI).href, onload: resolve, onerror: reject })
      this.inside.document.body.append(script)
    })
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
  }

  terminate() {
    this.frame.remove()
  }
}

if (location.protocol === "file:") window.Worker = window.IFrameWorker = FrameWorker

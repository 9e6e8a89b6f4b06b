// Search in pages that are opened as files: a browser starts no worker there, so that its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      const load = (url) =>
        new Promise((loaded, failed) => {
          const script = frame.contentDocument.createElement("script");
          Object.assign(script, { src: url, onload: loaded, onerror: failed });
          frame.contentDocument.head.append(script);
        });
      this.frame.importScripts = (...urls) => Promise.all(urls.map(load));
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(new URL(address, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
    set onmessage(listener) {
      this.addEventListener("message", listener);
    }
  };
}

// Answers the question of the join form while it is throttled: a number that, written behind the question, gives a SHA-256
// that begins with enough zero bits. It begins when the page is opened, a slice at a time, and nothing is sent anywhere. Without
// it the form is taken all the same, and its mail may wait.
const question = document.querySelector("form.sign-up input[name=question]");
if (question) {
  const form = question.form;
  const status = document.getElementById("working");
  const bits = Number(question.dataset.bits);
  // The button that was pressed before the answer was there.
  let pressed = null, waiting = false;

  // The constants of SHA-256: parts of the square and cube roots of the first primes.
  const primes = [];
  for (let n = 2; primes.length < 64; n++) {
    if (primes.every((p) => n % p)) primes.push(n);
  }
  const part = (root) => ((root - Math.floor(root)) * 4294967296) | 0;
  const start = primes.slice(0, 8).map((p) => part(Math.sqrt(p)));
  const round = Int32Array.from(primes.map((p) => part(Math.cbrt(p))));
  const w = new Int32Array(64);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));

  // One block of sixteen words, into the state; both stay in place.
  const compress = (state) => {
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      w[i] = (w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + round[i] + w[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  };

  // The question fills the first block, which is the same for every try.
  const text = question.value + ":";
  const first = Int32Array.from(start);
  for (let i = 0; i < 16; i++) {
    w[i] = 0;
    for (let k = 0; k < 4; k++) w[i] = (w[i] << 8) | text.charCodeAt(i * 4 + k);
  }
  compress(first);
  const rest = text.slice(64);
  const state = new Int32Array(8);

  const zeros = (answer) => {
    const last = rest + answer;
    for (let i = 0; i < 16; i++) w[i] = 0;
    for (let i = 0; i < last.length; i++) w[i >> 2] |= last.charCodeAt(i) << (24 - (i & 3) * 8);
    w[last.length >> 2] |= 0x80 << (24 - (last.length & 3) * 8);
    w[15] = (64 + last.length) * 8;
    state.set(first);
    compress(state);
    return Math.clz32(state[0]);
  };

  let n = 0;
  const work = () => {
    const until = performance.now() + 30;
    while (performance.now() < until) {
      for (let i = 0; i < 256; i++, n++) {
        if (zeros(n) >= bits) {
          form.elements.answer.value = n;
          if (waiting) {
            status.textContent = status.dataset.worked;
            // Not every browser knows the first; what it checks, the server checks, too.
            if (form.requestSubmit) form.requestSubmit(pressed);
            else form.submit();
          }
          return;
        }
      }
    }
    setTimeout(work);
  };
  setTimeout(work);

  form.addEventListener("submit", (event) => {
    if (form.elements.answer.value === "") {
      event.preventDefault();
      pressed = event.submitter;
      waiting = true;
      // Of the two buttons, the one that was pressed is in view.
      pressed?.after(status);
      status.textContent = status.dataset.working;
    }
  });
}

/** JavaScript with a decorator, which Node itself does not parse. */
const twice = (method) =>
  function (...args) {
    return method.apply(this, args) * 2;
  };

class Calculator {
  @twice
  answer() {
    return 21;
  }
}

export const decorated = new Calculator().answer();

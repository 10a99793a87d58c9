"""The OpenAI dialect: it only translates to and from the runtime."""

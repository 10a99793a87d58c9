"""One worker process per loaded model: llama.cpp, slots, batching, KV cache. Nothing else knows llama.cpp."""

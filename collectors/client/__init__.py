"""Drive a streaming OpenAI-compatible endpoint and log when each token reached the client.

Writes the token log of the service boundary, ``rank0.tokens.jsonl`` in the run's folder: strict JSON, ASCII,
one object per line, ``kind`` says which. Times ending in ``_ns`` are wall-clock ns since 1970 of the client's
host, those ending in ``_monotonic_ns`` are of its monotonic clock: take differences of these, for the wall
clock may be set meanwhile. What is not known is null. Lines of one request stand together, requests by
number.

``header`` (first line)
    ``format`` "tracebound.tokens", ``format_version`` 1; ``url``, ``endpoint`` (completions, chat), ``model``,
    ``tls``; ``clock``: resolution of both clocks as the system tells it, and the smallest step of the wall
    clock seen; ``load``: requests, warmup, concurrency or rate_per_s with spacing and seed, limits in s;
    ``body``: max_tokens and the names of further fields; ``headers``: names of headers that were added;
    ``emitted_fields``; ``text_kept``.
``request``
    ``request`` number from 0, ``warmup`` (one of the first, not for figures), ``prompt_*`` (length, sha256,
    index of the prompt), ``planned_ns`` (open loop: when it was due), ``started_ns`` (taken up), ``sent_ns``
    (just before the last bytes of the request went to the kernel: no answer is older), ``written_ns`` (when
    that call returned), ``connection`` (number), ``connect_ns`` (how long opening it took; null: kept from
    before).
``read``
    One read of the socket: ``read`` number from 0, ``receipt_ns`` just after it returned, ``bytes`` with HTTP's
    framing, ``body_bytes`` without; 0 bytes: the server hung up. ``kernel_ns``: wall clock when the kernel got
    the last packet of it, where Linux tells (not with TLS, nor always in a run's first ms); receipt minus
    kernel is this client's lateness. With TLS a read is one record.
``response``
    Status and headers; values only of those that hold no credentials, of ``other_headers`` the names.
``event``
    ``index`` in the stream, ``read`` that completed it and its receipt (events of one read share it: they were
    buffered on the way, or this client was late, see ``kernel_ns``), ``first_read`` that brought its first
    byte, ``bytes``; ``output``: it carries something the model made; ``text_chars`` (Unicode code points);
    ``tokens`` where the event tells them, by ``tokens_from``: token_ids, logprobs, or a running usage;
    ``finish_reason``, ``usage`` as the server has them; ``emitted_ns``: when the server says it emitted the
    event, by its own clock; ``created_s``: the chunk's ``created``, most often of the whole answer.
``comment``, ``done``, ``malformed``, ``error``
    Keep-alive lines, ``[DONE]``, events that are no chunk of a completion (``why``), errors of the server
    inside the stream.
``end``
    ``outcome``: complete, http_status, not_a_stream, server_error, malformed_event, malformed_http, cut_off
    (ended inside an event, or with neither [DONE] nor a reason to finish), disconnected, not_connected, too_long, limit
    (``--request-limit``), stopped (with the run); ``detail``, counts, ``completion_tokens`` by usage,
    ``emitted_field`` and ``emitted_resolution_ns`` (the finest digit that the server wrote in this answer).
``log_end`` (last line)
    ``requests`` that were sent, ``planned`` ones, ``stopped_by``: null, "limit" or the number of a signal.
"""

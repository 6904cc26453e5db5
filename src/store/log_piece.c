#include "store/log_piece.h"

/* CRC-32C (RFC 3720, B.4), turned and shifted as RocksDB stores it. */
uint32_t log_crc(const unsigned char *p, size_t n)
{
    static uint32_t table[256];
    uint32_t crc = UINT32_MAX;

    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = (c >> 1) ^ (c & 1 ? UINT32_C(0x82f63b78) : 0);
            table[i] = c;
        }
    while (n--)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 255];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static uint32_t get_le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

enum log_piece_state log_piece_read(const unsigned char *p, size_t n, struct log_piece *out)
{
    size_t length = p[4] | (size_t)p[5] << 8;

    *out = (struct log_piece){.type = p[6], .data = (const char *)p + LOG_HEADER, .n = length};
    if (p[6] == PIECE_NONE && length == 0)
        return LOG_PIECE_NOTHING;
    if (length > n - LOG_HEADER)
        return LOG_PIECE_BAD;
    out->size = LOG_HEADER + length;
    return log_crc(p + 6, length + 1) == get_le32(p) ? LOG_PIECE_WHOLE : LOG_PIECE_BAD;
}
